import * as v from "valibot";

/** The page of the audit has no options. */
export const auditConfig = v.strictObject({});
