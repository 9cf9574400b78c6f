import * as v from "valibot";
import { type ErrorMaker, faults, ServiceError } from "../grammar/error.ts";
import type { RouteContract } from "../grammar/contract.ts";
import type { JsonSchema, SchemaBook } from "./schema-book.ts";

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
  readonly "x-surface": string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

type Content = Readonly<
  Record<string, { readonly schema?: JsonSchema; readonly examples?: Examples; readonly "x-events"?: JsonSchema }>
>;
type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

const PREFER: Parameter = {
  name: "Prefer",
  in: "header",
  required: false,
  description: "`wait=SECONDS` (RFC 7240): answer when the result is there, at the latest after this time. At most 55 seconds.",
  schema: { type: "string", examples: ["wait=30"] },
};

const IDEMPOTENCY_KEY: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A name of the caller for this call: a repetition with the same name and the same body gets the answer of the first, and has no other effect. 1-256 characters, with or without quotes.",
  schema: { type: "string", examples: ['"8e03978e-40d5-43dd-bc93-6894a57f9324"'] },
};

interface OperationSource {
  readonly area: string;
  readonly key: string;
  readonly route: RouteContract;
  readonly schemas: SchemaBook;
  readonly security: Operation["security"];
}

/** One route as an OpenAPI operation. */
export function operationOf({ area, key, route, schemas, security }: OperationSource): Operation {
  const operationId = `${area}.${key}`;
  const parameters = [
    ...pathParameters(operationId, route, schemas),
    ...queryParameters(operationId, route, schemas),
    ...(route.waits ? [PREFER] : []),
    ...(route.takesKey ? [IDEMPOTENCY_KEY] : []),
  ];
  const requestBody = requestBodyOf(operationId, route, schemas);
  return {
    operationId,
    summary: route.summary,
    tags: [area],
    security,
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      [route.success.status]: { description: successOf(route), ...successContent(operationId, route, schemas) },
      ...errorResponses(route),
    },
    "x-surface": route.surface,
  };
}

/** Every name in the path is a parameter, also if the route declares no schema for it. */
function pathParameters(operationId: string, route: RouteContract, schemas: SchemaBook): Parameter[] {
  const declared = route.params ? schemas.of(`${operationId}.params`, route.params).properties : undefined;
  return [...route.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: (declared?.[name] as JsonSchema | undefined) ?? { type: "string" },
  }));
}

function queryParameters(operationId: string, route: RouteContract, schemas: SchemaBook): Parameter[] {
  if (!route.query) return [];
  const { properties = {}, required = [] } = schemas.of(`${operationId}.query`, route.query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema: schema as JsonSchema,
  }));
}

function requestBodyOf(operationId: string, route: RouteContract, schemas: SchemaBook): Operation["requestBody"] {
  if (!route.body && !route.accepts && route.bodyAs !== "stream") return undefined;
  const media = route.body ? { schema: schemas.of(`${operationId}.body`, route.body) } : {};
  return {
    required: !route.body || !v.is(route.body, undefined),
    content: Object.fromEntries((route.accepts ?? ["application/json"]).map((type) => [type, media])),
  };
}

/** Document viewers show no events, so the description of the answer lists them. */
function successOf({ success }: RouteContract): string {
  return success.kind === "events" ? `Server-sent events: ${Object.keys(success.events).join(", ")}` : "Success";
}

function successContent(operationId: string, route: RouteContract, schemas: SchemaBook): { content?: Content } {
  const { success } = route;
  switch (success.kind) {
    case "json":
      return { content: { "application/json": { schema: schemas.of(`${operationId}.answer`, success.schema) } } };
    case "empty":
      return {};
    case "events": {
      const events = Object.entries(success.events).map(([name, schema]) => [name, schemas.of(`${operationId}.${name}`, schema)]);
      return { content: { "text/event-stream": { schema: { type: "string" }, "x-events": Object.fromEntries(events) } } };
    }
    case "bytes":
      return { content: { "application/octet-stream": {} } };
    case "exchange":
      return { content: Object.fromEntries(success.mediaTypes.map((type) => [type, {}])) };
  }
}

/** All error answers by status. Each error has the form of the route's own envelope. */
function errorResponses(route: RouteContract): Operation["responses"] {
  const byStatus = Map.groupBy([...Object.values(route.errors ?? {}), ...ownFaults(route)], (error) => error.status);
  return Object.fromEntries(
    [...byStatus].map(([status, errors]) => {
      const examples = Object.fromEntries(
        errors.map((error) => [error.code, { summary: error.message ?? error.code, value: example(route, error) }]),
      );
      return [status, { description: Object.keys(examples).join(", "), content: { "application/json": { examples } } }];
    }),
  );
}

/** The faults that the grammar can find in requests for this route. */
function ownFaults(route: RouteContract): ErrorMaker[] {
  const isStreamed = route.bodyAs === "stream";
  const hasBody = route.body !== undefined || route.accepts !== undefined || isStreamed;
  const isParsed = route.body !== undefined && route.success.kind !== "exchange" && !isStreamed;
  const codes = [
    ...(route.params || route.query || isParsed || isStreamed ? (["invalid_request"] as const) : []),
    ...(isParsed ? (["invalid_json"] as const) : []),
    ...(isParsed || isStreamed ? (["request_timeout"] as const) : []),
    ...(hasBody ? (["body_too_large", "unsupported_media_type"] as const) : []),
    "internal_error" as const,
  ];
  return codes.map((code) => route.faults?.[code] ?? faults[code]);
}

function example(route: RouteContract, error: ErrorMaker): unknown {
  return route.envelope(new ServiceError(error), { method: route.method, path: route.path });
}
