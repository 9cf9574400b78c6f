import * as v from "valibot";

/** Attachments and media have no options: their limits are the specification's. */
export const attachmentsMediaConfig = v.strictObject({});
