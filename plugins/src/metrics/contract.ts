import { accessErrors, defineContract, reply } from "@portico/core/contract";

/** `GET /metrics` of a surface (open points 4). `auth` names the scheme of its guard. */
export function metricsContract({ surface, auth }: { readonly surface: string; readonly auth: string }) {
  return defineContract(
    { surface, auth, envelope: (error) => ({ error: error.message, code: error.code }) },
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
