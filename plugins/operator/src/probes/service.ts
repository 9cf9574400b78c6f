import { definePlugin, type Plugin, ports } from "@portico/core";
import * as v from "valibot";
import { probesContract } from "./contract.ts";

type IsReady = () => boolean | string;

/** Options of probes. */
const probesConfig = v.strictObject({
  /** The surface that answers. */
  surface: v.string(),
  /** Whether the app is ready for requests; a text is the reason why it is not. Default: always ready. A stopping host is not ready while it drains. The checks of the port `readiness` are asked afterwards. */
  isReady: v.optional(v.custom<IsReady>((value) => typeof value === "function", "a function")),
});

/** Options of probes, as they are given. */
export type ProbesOptions = v.InferInput<typeof probesConfig>;

/**
 * `GET /healthz` (alive) and `GET /readyz` (503 until ready), without a token (open points 4). Ready means: the host says so, and every
 * check of the port `readiness` passes. Install it once per surface.
 */
export function probes(options: ProbesOptions): Plugin {
  const { surface } = options;
  const plugin = definePlugin({
    // The name contains the surface, because plugins with the same name replace each other.
    name: `probes-${surface}`,
    summary: "Liveness and readiness of the process.",
    config: probesConfig,
    needs: { readiness: ports.readiness },
    contract: probesContract(surface),
    setup: ({ readiness }, { isReady = () => true }) => ({
      alive: () => ({ status: "alive" as const }),
      async ready({ fail }) {
        const answer = isReady();
        if (typeof answer === "string") throw fail.service_not_ready(undefined, { reason: answer });
        if (!answer) throw fail.service_not_ready();
        const failures = await readiness.failures();
        if (failures.length > 0) {
          const reason = failures.map(({ name, reason: why }) => `${name}: ${why}`).join("; ");
          throw fail.service_not_ready(undefined, { reason });
        }
        return { status: "ready" as const };
      },
    }),
  });
  return plugin(options);
}
