import { defineContract, defineErrors, reply } from "@portico/core";
import * as v from "valibot";

/** What can go wrong, by its code. */
export const sampleNameErrors = defineErrors({
  unauthorized: { status: 401, message: "The token is needed" },
  item_exists: { status: 409, message: "An item of this name is there already" },
  item_unknown: { status: 404, message: "There is no item of this name" },
});

export const item = v.object({ name: v.string(), addedAt: v.string() });
export type Item = v.InferOutput<typeof item>;

const name = v.pipe(v.string(), v.nonEmpty(), v.maxLength(100));
const errors = sampleNameErrors;

/** What the outside may call. Data alone: documents and typed clients are derived from it. */
export const sampleNameContract = defineContract(
  {
    surface: "sample-name",
    // Names a guard of the plugin. "open" would let everybody in.
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
      summary: "List items by their names",
      success: reply.json(v.object({ items: v.array(item) })),
      errors,
    },
    watch: {
      method: "GET",
      path: "/events",
      summary: "Items as they are added",
      success: reply.events({ added: item }),
      errors,
    },
  },
);
