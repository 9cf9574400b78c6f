import { defineContract, defineErrors, reply } from "@portico/core/contract";
import * as v from "valibot";

const errors = defineErrors({ console_file_not_found: { status: 404 } });

/** The web console's own files. They hold nothing of an instance, so that they are open. */
export const webConsoleContract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.message, code: error.code }) },
  {
    page: { method: "GET", path: "/", summary: "The web console", success: reply.bytes() },
    file: {
      method: "GET",
      path: "/console/:file",
      summary: "A script, a style or a font of the web console",
      params: v.strictObject({ file: v.string() }),
      success: reply.bytes(),
      errors,
    },
  },
);
