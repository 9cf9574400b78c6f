import * as v from "valibot";
import { defineErrors } from "./error.ts";
import { definePlugin, type Plugin } from "./plugin.ts";
import { defineContract, reply } from "./route.ts";

export interface ProbeOptions {
  /** The surface that answers. */
  readonly surface: string;
  /** Whether requests should come in now; default: always. A host that stops says no first, and then drains. */
  readonly isReady?: () => boolean;
}

const probeErrors = defineErrors({ service_not_ready: { status: 503 } });

/** `GET /healthz` (alive) and `GET /readyz` (503 until ready), without a token (open points 4). Install it once per surface. */
export function probes({ surface, isReady = () => true }: ProbeOptions): Plugin {
  const contract = defineContract(
    { surface, auth: "open", envelope: (error) => ({ status: error.code }) },
    {
      alive: {
        method: "GET",
        path: "/healthz",
        summary: "Whether the process answers",
        success: reply.json(v.object({ status: v.literal("alive") })),
      },
      ready: {
        method: "GET",
        path: "/readyz",
        summary: "Whether requests should be sent here",
        success: reply.json(v.object({ status: v.literal("ready") })),
        errors: probeErrors,
      },
    },
  );
  const plugin = definePlugin({
    // One name per surface: plugins of one name replace each other.
    name: `probes-${surface}`,
    summary: "Whether the process answers, and whether requests should be sent there.",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({
      alive: () => ({ status: "alive" as const }),
      ready({ fail }) {
        if (!isReady()) throw fail.service_not_ready();
        return { status: "ready" as const };
      },
    }),
  });
  return plugin({});
}
