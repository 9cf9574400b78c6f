import { definePlugin, type Plugin } from "@portico/core";
import { probesConfig, type ProbesOptions } from "./config.ts";
import { probesContract } from "./contract.ts";

export type { ProbesOptions } from "./config.ts";

/** `GET /healthz` (alive) and `GET /readyz` (503 until ready), without a token (open points 4). Install it once per surface. */
export function probes(options: ProbesOptions): Plugin {
  const { surface } = options;
  const plugin = definePlugin({
    // The name contains the surface, because plugins with the same name replace each other.
    name: `probes-${surface}`,
    summary: "Liveness and readiness of the process.",
    config: probesConfig,
    needs: {},
    contract: probesContract(surface),
    setup: (_given, { isReady = () => true }) => ({
      alive: () => ({ status: "alive" as const }),
      ready({ fail }) {
        const answer = isReady();
        if (typeof answer === "string") throw fail.service_not_ready(undefined, { reason: answer });
        if (!answer) throw fail.service_not_ready();
        return { status: "ready" as const };
      },
    }),
  });
  return plugin(options);
}
