import type { Contract } from "../route.ts";
import { type Operation, operationOf } from "./operation.ts";
import { SchemaBook } from "./schema-book.ts";

export interface OpenAPIOptions {
  /** Only the routes of this surface; default all. */
  readonly surface?: string;
  /** How the credential behind each `auth` name is presented. Several descriptions of one name: any of them will do. */
  readonly security?: Readonly<Record<string, SecurityScheme | readonly SecurityScheme[]>>;
  /** Where the surface stands. */
  readonly servers?: readonly { readonly url: string; readonly description?: string }[];
}

export type SecurityScheme =
  | { readonly type: "http"; readonly scheme: "bearer"; readonly description?: string }
  | { readonly type: "apiKey"; readonly in: "header" | "query" | "cookie"; readonly name: string; readonly description?: string };

export interface OpenAPIDocument {
  readonly openapi: "3.1.1";
  readonly info: { readonly title: string; readonly version: string };
  readonly servers?: OpenAPIOptions["servers"];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
    readonly schemas: Readonly<Record<string, unknown>>;
  };
}

/**
 * The OpenAPI 3.1 document of some contracts, by plugin name: a projection, with no fact of its own. Throws a sentence when one method
 * and path stand on two surfaces, since a document has only one place for them: make one document per surface then.
 */
export function toOpenAPI(
  info: { readonly title: string; readonly version: string },
  contracts: Readonly<Record<string, Contract>>,
  options: OpenAPIOptions = {},
): OpenAPIDocument {
  const paths: Record<string, Record<string, Operation>> = {};
  const securitySchemes: Record<string, SecurityScheme> = {};
  const schemas = new SchemaBook();
  const tags: { name: string }[] = [];

  for (const [area, contract] of Object.entries(contracts)) {
    const routes = Object.entries(contract).filter(([, { surface }]) => surface === (options.surface ?? surface));
    if (routes.length > 0) tags.push({ name: area });
    for (const [key, route] of routes) {
      const named = securityOf(route.auth, options.security);
      Object.assign(securitySchemes, named);
      const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
      const method = route.method.toLowerCase();
      const operations = paths[path] ?? {};
      paths[path] = operations;
      if (operations[method]) {
        throw new Error(`${route.method} ${route.path} stands on several surfaces: name one, there is one document per surface`);
      }
      operations[method] = operationOf({
        area,
        key,
        route,
        schemas,
        security: Object.keys(named).map((name) => ({ [name]: [] })),
      });
    }
  }
  return {
    openapi: "3.1.1",
    info: { title: info.title, version: info.version },
    ...(options.servers && { servers: options.servers }),
    tags,
    paths,
    components: { securitySchemes, schemas: schemas.shared },
  };
}

/** The named schemes of one `auth`: none for `open`. One that nobody described is at least named. */
function securityOf(auth: string, described: OpenAPIOptions["security"] = {}): Record<string, SecurityScheme> {
  if (auth === "open") return {};
  const undescribed: SecurityScheme = {
    type: "apiKey",
    in: "header",
    name: "Authorization",
    description: `The credential "${auth}"`,
  };
  const schemes = [described[auth] ?? undescribed].flat() as SecurityScheme[];
  return Object.fromEntries(schemes.map((scheme, index) => [index === 0 ? auth : `${auth}-${index + 1}`, scheme]));
}
