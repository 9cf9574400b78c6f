import * as v from "valibot";

/** Agent schedules have no options. */
export const agentSchedulesConfig = v.strictObject({});
