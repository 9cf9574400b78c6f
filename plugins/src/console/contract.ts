import { defineContract, defineErrors, reply } from "@portico/core/contract";
import * as v from "valibot";

const errors = defineErrors({ console_file_not_found: { status: 404 } });

/** The files of the web console. They contain no data of an instance, so they need no credential. */
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
