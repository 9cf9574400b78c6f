import { defineContract, reply } from "@portico/core";
import { type OpenAPIDocument, toOpenAPI } from "@portico/core/openapi";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { guestContract } from "./derived-contract.ts";

const info = { title: "Guests", version: "1.2.3" };
const document = toOpenAPI(
  info,
  { guests: guestContract },
  { security: { "house-key": { type: "apiKey", in: "header", name: "X-Key" } } },
);

describe("the OpenAPI document", () => {
  it("has one operation per route, named and tagged after its area", () => {
    expect([document.openapi, document.info, document.tags]).toEqual(["3.1.1", info, [{ name: "guests" }]]);
    expect(operations(document)).toEqual([
      ["get /guests/{name}", "guests.greet"],
      ["put /guests/{name}", "guests.save"],
      ["post /said", "guests.say"],
      ["delete /guests", "guests.forget"],
      ["get /ticks/{count}", "guests.ticks"],
      ["get /picture", "guests.picture"],
      ["post /move", "guests.move"],
      ["post /tree", "guests.tree"],
    ]);
  });

  it("describes parameters of path and query from their schemas", () => {
    expect(operation("/guests/{name}", "get").parameters).toEqual([
      { name: "name", in: "path", required: true, schema: { type: "string", maxLength: 40 } },
      { name: "loud", in: "query", required: false, schema: { type: "string", enum: ["yes", "no"] } },
      { name: "tag", in: "query", required: false, schema: { type: "array", items: { type: "string" } } },
    ]);
  });

  it("describes bodies as they are sent, before any transformation", () => {
    expect(operation("/guests/{name}", "put").requestBody).toEqual({
      required: true,
      content: {
        "application/json": {
          schema: {
            type: "object",
            properties: { title: { type: "string" }, age: { type: "string" }, note: { type: "string", default: "none" } },
            required: ["title", "age"],
            additionalProperties: false,
          },
        },
      },
    });
    expect(operation("/said", "post").requestBody?.required).toBe(false);
    expect(operation("/move", "post").requestBody).toEqual({ required: true, content: { "text/plain": {}, "image/png": {} } });
    expect(operation("/guests", "delete")).not.toHaveProperty("requestBody");
  });

  it("describes every kind of success", () => {
    const success = (path: string, method: string) =>
      Object.entries(operation(path, method).responses).find(([status]) => status < "400");
    expect(success("/guests/{name}", "put")).toMatchObject([
      "201",
      { content: { "application/json": { schema: { properties: { age: { type: "number" } } } } } },
    ]);
    expect(success("/guests", "delete")).toEqual(["204", { description: "Success" }]);
    expect(success("/ticks/{count}", "get")).toMatchObject([
      "200",
      {
        description: "Server-sent events: tick, done",
        content: {
          "text/event-stream": { schema: { type: "string" }, "x-events": { tick: { type: "object" }, done: { type: "null" } } },
        },
      },
    ]);
    expect(success("/picture", "get")).toMatchObject(["200", { content: { "application/octet-stream": {} } }]);
    expect(success("/move", "post")).toMatchObject(["200", { content: { "text/plain": {} } }]);
  });

  it("groups errors by status, each as the route's own envelope shows it", () => {
    const { responses } = operation("/guests/{name}", "get");
    expect(responses[404]).toEqual({
      description: "guest_unknown, guest_gone",
      content: {
        "application/json": {
          examples: {
            guest_unknown: { summary: "No such guest", value: { error: "guest_unknown" } },
            guest_gone: { summary: "The guest has left", value: { error: "guest_gone" } },
          },
        },
      },
    });
    expect(operation("/guests/{name}", "put").responses[401]!.content!["application/json"]!.examples).toEqual({
      wrong_key: { summary: "wrong_key", value: { type: "error", error: { type: "wrong_key", message: "wrong_key" } } },
    });
  });

  it("lists the errors that the framework itself can return for a route, in the form of the area", () => {
    const codes = (path: string, method: string) =>
      Object.entries(operation(path, method).responses)
        .filter(([status]) => status >= "400")
        .map(([status, { description }]) => `${status} ${description}`);
    expect(codes("/picture", "get")).toEqual(["500 internal_error"]);
    expect(codes("/move", "post")).toEqual(["413 body_too_large", "415 unsupported_media_type", "500 internal_error"]);
    expect(codes("/said", "post")).toEqual([
      "400 invalid_request, invalid_json",
      "408 request_timeout",
      "413 body_too_large",
      "415 unsupported_media_type",
      "422 rude",
      "500 internal_error",
    ]);
    expect(operation("/said", "post").responses[400]!.content!["application/json"]!.examples!.invalid_json).toEqual({
      summary: "That is no JSON",
      value: { error: "That is no JSON" },
    });
  });

  it("describes the credential of every protected route; open routes have no credential", () => {
    expect(document.components.securitySchemes).toEqual({ "house-key": { type: "apiKey", in: "header", name: "X-Key" } });
    expect(operation("/guests", "delete").security).toEqual([{ "house-key": [] }]);
    expect(operation("/picture", "get").security).toEqual([]);
  });

  it("accepts several alternatives for one credential, and still names a credential without a description", () => {
    const bearer = { type: "http", scheme: "bearer" } as const;
    const header = { type: "apiKey", in: "header", name: "x-api-key" } as const;
    const either = toOpenAPI(info, { guests: guestContract }, { security: { "house-key": [header, bearer] } });
    expect(either.components.securitySchemes).toEqual({ "house-key": header, "house-key-2": bearer });
    expect(either.paths["/guests"]!.delete!.security).toEqual([{ "house-key": [] }, { "house-key-2": [] }]);
    const undescribed = toOpenAPI(info, { guests: guestContract });
    expect(undescribed.components.securitySchemes["house-key"]).toMatchObject({ description: 'The credential "house-key"' });
  });

  it("moves what a schema refers to within itself to the document's components", () => {
    expect(operation("/tree", "post").requestBody?.content["application/json"]?.schema).toEqual({
      $ref: "#/components/schemas/guests.tree.body.0",
    });
    for (const reference of references(document)) expect(lookUp(reference)).toBeDefined();
    expect(references(document).length).toBeGreaterThan(1);
  });

  it("says of itself what it is given: its license, where the service is, and what each area is", () => {
    const license = { name: "MIT", url: "https://license.example" };
    const servers = [{ url: "/", description: "Here" }];
    const told = toOpenAPI(
      { ...info, license },
      { guests: guestContract },
      { servers, summaries: { guests: "Who comes and goes.", others: "Not in it." } },
    );
    expect([told.info, told.servers, told.tags]).toEqual([
      { ...info, license },
      servers,
      [{ name: "guests", description: "Who comes and goes." }],
    ]);
  });

  it("is of one surface where one is named, and refuses one place for two surfaces", () => {
    const probe = (surface: string) =>
      defineContract(
        { surface, auth: "open", envelope: (error) => error.code },
        { health: { method: "GET", path: "/healthz", summary: "", success: reply.json(v.literal("ok")) } },
      );
    const contracts = { guests: guestContract, one: probe("agent"), two: probe("workflow") };
    const workflow = toOpenAPI(info, contracts, { surface: "workflow", servers: [{ url: "http://127.0.0.1:81" }] });
    expect(operations(workflow)).toEqual([["get /healthz", "two.health"]]);
    expect([workflow.tags, workflow.servers]).toEqual([[{ name: "two" }], [{ url: "http://127.0.0.1:81" }]]);
    expect(() => toOpenAPI(info, contracts)).toThrow(
      "GET /healthz exists on several surfaces: choose one, because a document describes one surface",
    );
  });

  it("keeps the structure that OpenAPI 3.1 asks for", () => {
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
    const ids = operations(document).map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const operation of Object.values(methods)) {
        const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
        expect(declared.map(({ name, required }) => [name, required])).toEqual(names.map((name) => [name, true]));
        for (const requirement of operation.security) {
          for (const name of Object.keys(requirement)) expect(document.components.securitySchemes).toHaveProperty([name]);
        }
        for (const [status, response] of Object.entries(operation.responses)) {
          expect(status).toMatch(/^[2-5]\d\d$/);
          expect(response.description).not.toBe("");
        }
      }
    }
    for (const key of Object.keys(document.components.schemas)) expect(key).toMatch(/^[A-Za-z0-9._-]+$/);
  });
});

function operation(path: string, method: string) {
  const found = document.paths[path]?.[method];
  if (!found) throw new Error(`There is no ${method} ${path}`);
  return found;
}

function operations(of: OpenAPIDocument): [string, string][] {
  return Object.entries(of.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]): [string, string] => [`${method} ${path}`, operationId]),
  );
}

function references(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => (key === "$ref" ? [String(each)] : references(each)));
}

function lookUp(reference: string): unknown {
  const [root, ...keys] = reference.split("/");
  expect(root).toBe("#");
  return keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}
