import { defineContract, defineErrors, reply } from "@portico/core";
import * as v from "valibot";

/** All errors, by code. */
export const sampleNameErrors = defineErrors({
  unauthorized: { status: 401, message: "A valid token is required" },
  item_exists: { status: 409, message: "An item with this name already exists" },
  item_unknown: { status: 404, message: "No item has this name" },
});

export const item = v.object({ name: v.string(), addedAt: v.string() });
export type Item = v.InferOutput<typeof item>;

const name = v.pipe(v.string(), v.nonEmpty(), v.maxLength(100));
const errors = sampleNameErrors;

/** The routes that callers may use. Only data: documents and typed clients are derived from it. */
export const sampleNameContract = defineContract(
  {
    surface: "sample-name",
    // The name of a guard of the plugin. "open" would accept every caller.
    auth: "holder",
    envelope: (error) => ({ error: error.code, message: error.message }),
  },
  {
    add: {
      method: "POST",
      path: "/items",
      summary: "Add an item",
      body: v.strictObject({ name }),
      success: reply.json(item, 201),
      errors,
    },
    find: {
      method: "GET",
      path: "/items/:name",
      summary: "Find an item",
      params: v.strictObject({ name }),
      success: reply.json(item),
      errors,
    },
    list: {
      method: "GET",
      path: "/items",
      summary: "List items, ordered by name",
      success: reply.json(v.object({ items: v.array(item) })),
      errors,
    },
    watch: {
      method: "GET",
      path: "/events",
      summary: "Stream items as they are added",
      success: reply.events({ added: item }),
      errors,
    },
  },
);
