import { defineContract, definePlugin, type Given, type Needs, type Plugin, ports, reply } from "@portico/core";
import * as v from "valibot";
import { instanceErrors } from "./instance-errors.ts";
import type { SurfaceAccess } from "./surface-access.ts";

/**
 * `GET /openapi.json` and `GET /asyncapi.json` of a surface, with a token of it: all that the app's plugins have there, those of third parties
 * too. Who may not call a service need not know what it can be called with.
 */
export function apiPages<const N extends Needs>({ surface, auth, needs, guard }: SurfaceAccess<N>): Plugin {
  const plugin = definePlugin({
    // One name per surface: plugins of one name replace each other.
    name: `api-${surface}`,
    summary: "What this service can be called with, and what it tells.",
    config: v.strictObject({}),
    needs: { ...needs, areas: ports.areas },
    contract: defineContract(
      { surface, auth, envelope: (error) => ({ error: error.message, code: error.code }) },
      {
        openapi: {
          method: "GET",
          path: "/openapi.json",
          summary: "The calls of this service, as an OpenAPI 3.1 document",
          success: reply.json(v.looseObject({ openapi: v.string() })),
          errors: instanceErrors,
        },
        asyncapi: {
          method: "GET",
          path: "/asyncapi.json",
          summary: "The events of this service, as an AsyncAPI 3.0 document",
          success: reply.json(v.looseObject({ asyncapi: v.string() })),
          errors: instanceErrors,
        },
      },
    ),
    guards: (given) => ({ [auth]: guard(given) }),
    setup(given) {
      const { areas } = given as Given<{ readonly areas: typeof ports.areas }>;
      // Made when first asked for, so that no start waits for what makes them; they never change.
      let documents: ReturnType<typeof describe> | undefined;
      const described = () => (documents ??= describe(areas, surface));
      return {
        openapi: async () => (await described()).openapi,
        asyncapi: async () => (await described()).asyncapi,
      };
    },
  });
  return plugin({});
}

async function describe(areas: readonly ports.Area[], surface: string) {
  const { asyncAPIOf, openAPIOf } = await import("./api-documents.ts");
  return { openapi: { ...openAPIOf(areas, surface) }, asyncapi: { ...asyncAPIOf(areas, surface) } };
}
