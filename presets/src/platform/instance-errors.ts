import { defineErrors } from "@portico/core/contract";

/** What every call that takes a token of the agent service can be refused with. */
export const instanceErrors = defineErrors({ unauthorized: { status: 401, message: "unauthorized" } });
