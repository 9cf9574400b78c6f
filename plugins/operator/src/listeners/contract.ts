import { accessErrors, defineContract, pageEnvelope, readParameters, record, reply } from "@portico/core/contract";
import * as v from "valibot";

/** The URLs of an app's surfaces. Callers need a token of the agent service. */
export const listenersContract = defineContract(
  { surface: "agent", auth: "instance", envelope: pageEnvelope },
  {
    listeners: {
      method: "GET",
      path: "/api/listeners",
      summary: "Read the addresses of the instance's surfaces: as printed at the start, or the public ones of a cluster",
      query: readParameters({}),
      success: reply.json(v.object({ listeners: record(v.string(), v.object({ url: v.string() })) })),
      errors: accessErrors,
    },
  },
);
