import { defineContract, reply } from "@portico/core/contract";
import * as v from "valibot";
import { instanceErrors } from "./instance-errors.ts";

/** Where the areas of an instance are found, for whoever knows its agent service. */
export const listenersContract = defineContract(
  { surface: "agent", auth: "instance", envelope: (error) => ({ error: error.message, code: error.code }) },
  {
    listeners: {
      method: "GET",
      path: "/api/listeners",
      summary: "Where the surfaces of this process listen, as the start tells it",
      success: reply.json(v.object({ listeners: v.record(v.string(), v.object({ url: v.string() })) })),
      errors: instanceErrors,
    },
  },
);
