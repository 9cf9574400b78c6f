import { accessErrors, defineContract, pageEnvelope, reply } from "@portico/core/contract";

/** `GET /metrics` of a surface (open points 4). `auth` names the scheme of its guard. */
export function metricsContract({ surface, auth }: { readonly surface: string; readonly auth: string }) {
  return defineContract(
    { surface, auth, envelope: pageEnvelope },
    {
      metrics: {
        method: "GET",
        path: "/metrics",
        summary: "Read the metrics",
        success: reply.bytes(),
        errors: accessErrors,
      },
    },
  );
}
