import * as v from "valibot";

/** Agent documents have no options. */
export const agentDocumentsConfig = v.strictObject({});
