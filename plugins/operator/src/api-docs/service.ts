import { type Access, definePlugin, type Given, type Plugin, ports } from "@portico/core";
import * as v from "valibot";
import { apiDocsContract, describedSurface, type DescribedSurface } from "./contract.ts";

const apiDocsConfig = v.strictObject({
  ...describedSurface,
  /** Who may read them. */
  access: v.custom<Access>((value) => typeof (value as Access | undefined)?.guard === "function", "an access"),
});

/** Options of `apiDocs`. */
export type ApiDocsOptions = v.InferInput<typeof apiDocsConfig>;

/**
 * `GET /openapi.json` and `GET /asyncapi.json` of a surface. They describe all plugins on the surface, including third-party plugins. Install
 * it once per surface. The documents show what is installed, so choose an `access` that admits only callers of the service.
 */
export function apiDocs(options: ApiDocsOptions): Plugin {
  const { surface, access } = options;
  const plugin = definePlugin({
    // The name contains the surface, because plugins with the same name replace each other.
    name: `api-${surface}`,
    summary: "Documents of the calls and events of this service.",
    config: apiDocsConfig,
    needs: { ...access.needs, areas: ports.areas },
    contract: apiDocsContract({ surface, auth: access.auth }),
    ...(access.security && { security: { [access.auth]: access.security } }),
    guards: (given) => ({ [access.auth]: access.guard(given) }),
    setup(given, { access: _access, ...described }) {
      const { areas } = given as Given<{ readonly areas: typeof ports.areas }>;
      // Created at the first request, so that it does not delay the start. The documents never change.
      let documents: ReturnType<typeof describe> | undefined;
      const shown = () => (documents ??= describe(areas, described));
      return {
        openapi: async () => (await shown()).openapi,
        asyncapi: async () => (await shown()).asyncapi,
      };
    },
  });
  return plugin(options);
}

async function describe(areas: readonly ports.Area[], described: DescribedSurface) {
  const { asyncAPIOf, openAPIOf } = await import("./documents.ts");
  return { openapi: { ...openAPIOf(areas, described) }, asyncapi: { ...asyncAPIOf(areas, described) } };
}
