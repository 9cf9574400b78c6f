import type { Contract } from "../grammar/contract.ts";
import { type DocumentInfo, SchemaBook } from "./schema-book.ts";
import { type Operation, operationOf } from "./operation.ts";
import { type Security, type SecurityScheme, securitySchemesOf } from "./security-schemes.ts";

export type { DocumentInfo } from "./schema-book.ts";
export type { Security, SecurityScheme } from "./security-schemes.ts";

/** Options of an OpenAPI document. */
export interface OpenAPIOptions {
  /** Only the routes of this surface; default all. */
  readonly surface?: string;
  /** How the credential behind each `auth` name is presented. */
  readonly security?: Security;
  /** Addresses of the surface. */
  readonly servers?: readonly { readonly url: string; readonly description?: string }[];
  /** Summary of each area, by plugin name. */
  readonly summaries?: Readonly<Record<string, string | undefined>>;
}

/** An OpenAPI document, limited to the parts that Portico writes. */
export interface OpenAPIDocument {
  readonly openapi: "3.1.1";
  readonly info: DocumentInfo;
  readonly servers?: OpenAPIOptions["servers"];
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
    readonly schemas: Readonly<Record<string, unknown>>;
  };
}

/**
 * The OpenAPI 3.1 document of some contracts, by plugin name. Everything in it is derived from contracts. Throws a sentence if
 * one method and path exist on two surfaces, because a document can hold only one of them: make one document per surface then.
 */
export function toOpenAPI(
  info: DocumentInfo,
  contracts: Readonly<Record<string, Contract>>,
  options: OpenAPIOptions = {},
): OpenAPIDocument {
  const paths: Record<string, Record<string, Operation>> = {};
  const securitySchemes: Record<string, SecurityScheme> = {};
  const schemas = new SchemaBook();
  const tags: { name: string; description?: string }[] = [];

  for (const [area, contract] of Object.entries(contracts)) {
    const routes = Object.entries(contract).filter(([, { surface }]) => surface === (options.surface ?? surface));
    const description = options.summaries?.[area];
    if (routes.length > 0) tags.push({ name: area, ...(description !== undefined && { description }) });
    for (const [key, route] of routes) {
      const named = securitySchemesOf(route.auth, options.security);
      Object.assign(securitySchemes, named);
      const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
      const method = route.method.toLowerCase();
      const operations = paths[path] ?? {};
      paths[path] = operations;
      if (operations[method]) {
        throw new Error(
          `${route.method} ${route.path} exists on several surfaces: choose one, because a document describes one surface`,
        );
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
    info,
    ...(options.servers && { servers: options.servers }),
    tags,
    paths,
    components: { securitySchemes, schemas: schemas.shared },
  };
}
