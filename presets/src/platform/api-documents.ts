import type { ports } from "@portico/core";
import { type AsyncAPIDocument, toAsyncAPI } from "@portico/core/asyncapi";
import { type DocumentInfo, type OpenAPIDocument, type Security, toOpenAPI } from "@portico/core/openapi";
import { VERSION } from "./version.ts";

/** How the credentials of the areas are presented (specification 5), by the names that their contracts use. */
const SECURITY: Security = {
  "safe-token": [
    { type: "http", scheme: "bearer", description: "A safe token" },
    { type: "apiKey", in: "header", name: "x-api-key", description: "A safe token; wins when both are sent" },
  ],
  service: { type: "apiKey", in: "header", name: "X-Workflow-Service-Token", description: "The workflow service's token" },
  instance: { type: "apiKey", in: "header", name: "X-Agent-Service-Token", description: "A token of the agent service" },
  owner: { type: "apiKey", in: "header", name: "X-Agent-Service-Token", description: "An owner's token of the agent service" },
};

const TITLES: Readonly<Record<string, string>> = {
  proxy: "Portico model proxy",
  workflow: "Portico workflow service",
  agent: "Portico agent service",
};

/** Realtime channels are served by Socket.IO in every preset that has one. */
const TRANSPORT =
  "Socket.IO, version 4 of its protocol for clients: connect to this path, with the message `connect` as `auth`. Each other message is an event of its name, whose only argument is the payload.";

/** The calls of a surface, as OpenAPI describes them. */
export function openAPIOf(areas: readonly ports.Area[], surface: string): OpenAPIDocument {
  return toOpenAPI(infoOf(surface), Object.fromEntries(areas.map(({ name, contract }) => [name, contract])), {
    surface,
    security: SECURITY,
    summaries: Object.fromEntries(areas.map(({ name, summary }) => [name, summary])),
    // Wherever the document was got from: listeners have the ports that the system gives them.
    servers: [{ url: "/", description: "The surface's own listener" }],
  });
}

/** The events of a surface, as AsyncAPI describes them. */
export function asyncAPIOf(areas: readonly ports.Area[], surface: string): AsyncAPIDocument {
  return toAsyncAPI(infoOf(surface), areas, { surface, security: SECURITY, transport: TRANSPORT });
}

function infoOf(surface: string): DocumentInfo {
  return {
    title: TITLES[surface] ?? `Portico: ${surface}`,
    version: VERSION,
    license: { name: "MIT", url: "https://opensource.org/license/mit" },
  };
}
