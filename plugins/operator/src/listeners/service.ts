import { definePlugin, instanceAccess } from "@portico/core";
import * as v from "valibot";
import { listenersContract } from "./contract.ts";

/** Surface name to URL. The function is called for each request, because ports may be assigned after the app was built. */
export type Listeners = () => Readonly<Record<string, string>>;

/** `GET /api/listeners` on surface `agent`: the addresses of the surfaces, as the host knows them. The web console uses it. */
export const listeners = definePlugin({
  name: "listeners",
  summary: "The addresses of the instance's surfaces.",
  config: v.strictObject({
    /** The URL of each surface that the host knows. */
    urls: v.custom<Listeners>((value) => typeof value === "function", "a function"),
  }),
  needs: instanceAccess.needs,
  contract: listenersContract,
  security: { instance: instanceAccess.security! },
  guards: (given) => ({ instance: instanceAccess.guard(given) }),
  setup: (_given, { urls }) => ({
    listeners: () => ({
      listeners: Object.fromEntries(Object.entries(urls()).map(([surface, url]) => [surface, { url }])),
    }),
  }),
});
