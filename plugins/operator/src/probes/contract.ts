import { defineContract, defineErrors, reply } from "@portico/core/contract";
import * as v from "valibot";

const probeErrors = defineErrors({ service_not_ready: { status: 503 } });

/** `GET /healthz` and `GET /readyz` of a surface, without a credential (open points 4). */
export function probesContract(surface: string) {
  return defineContract(
    { surface, auth: "open", envelope: (error) => ({ status: error.code, ...error.details }) },
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
}
