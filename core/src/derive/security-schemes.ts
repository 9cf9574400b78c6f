/** How a credential is presented, in OpenAPI's words. */
export type SecurityScheme =
  | { readonly type: "http"; readonly scheme: "bearer"; readonly description?: string }
  | { readonly type: "apiKey"; readonly in: "header" | "query" | "cookie"; readonly name: string; readonly description?: string };

/** By the names that contracts use. If a name has several descriptions, each of them is sufficient. */
export type Security = Readonly<Record<string, SecurityScheme | readonly SecurityScheme[]>>;

/** The named schemes of one `auth`; an empty list for `open`. A scheme without a description still gets its name. */
export function securitySchemesOf(auth: string, described: Security = {}): Readonly<Record<string, SecurityScheme>> {
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
