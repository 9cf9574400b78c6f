import type { ports } from "@portico/core";
import { type AsyncAPIDocument, toAsyncAPI } from "@portico/core/asyncapi";
import { type DocumentInfo, type OpenAPIDocument, type Security, toOpenAPI } from "@portico/core/openapi";
import type { DescribedSurface } from "./contract.ts";

export type { DescribedSurface } from "./contract.ts";

/** The calls of a surface, as OpenAPI describes them. */
export function openAPIOf(areas: readonly ports.Area[], described: DescribedSurface): OpenAPIDocument {
  return toOpenAPI(infoOf(described), Object.fromEntries(areas.map(({ name, contract }) => [name, contract])), {
    surface: described.surface,
    security: securityOf(areas, described.surface),
    summaries: Object.fromEntries(areas.map(({ name, summary }) => [name, summary])),
    // Relative to the address of the document, because the system may assign the listeners' ports.
    servers: [{ url: "/", description: "The surface's own listener" }],
  });
}

/** The events of a surface, as AsyncAPI describes them. */
export function asyncAPIOf(areas: readonly ports.Area[], described: DescribedSurface): AsyncAPIDocument {
  const { surface, transport } = described;
  const security = securityOf(areas, surface);
  return toAsyncAPI(infoOf(described), areas, { surface, security, ...(transport !== undefined && { transport }) });
}

/** The security schemes of the areas on one surface. Other surfaces may use the same names for other credentials. */
function securityOf(areas: readonly ports.Area[], surface: string): Security {
  const there = areas.filter(({ contract }) => Object.values(contract).some((route) => route.surface === surface));
  return Object.assign({}, ...there.map(({ security }) => security)) as Security;
}

function infoOf({ surface, title = surface, version = "0.0.0" }: DescribedSurface): DocumentInfo {
  return { title, version, license: { name: "MIT", url: "https://opensource.org/license/mit" } };
}
