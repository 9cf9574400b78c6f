import * as v from "valibot";

/** The page of usage has no options. */
export const usageConfig = v.strictObject({});
