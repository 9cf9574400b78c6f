import { defineErrors } from "./error.ts";

/** The errors of the guards of `instanceAccess` and `scraperAccess`. */
export const accessErrors = defineErrors({ unauthorized: { status: 401, message: "unauthorized" } });
