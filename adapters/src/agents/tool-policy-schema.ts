import { objectOnly, parseDuration, record } from "@portico/core";
import * as v from "valibot";

/** The longest that a timer waits. */
const LONGEST_MS = 2 ** 31 - 1;

const permission = v.picklist(["allow", "ask", "deny"]);

const rules = {
  tools: v.optional(v.pipe(record(v.string(), permission), v.maxEntries(1_000), v.description("By tool ID."))),
  riskLevels: v.optional(
    v.pipe(
      objectOnly(
        v.strictObject({
          low: v.optional(permission),
          medium: v.optional(permission),
          high: v.optional(permission),
          critical: v.optional(permission),
        }),
      ),
      v.description("By risk level, for tools without a permission of their own."),
    ),
  ),
};

/** `toolPolicy` of an `agent.json`. */
export const toolPolicySchema = objectOnly(
  v.strictObject({
    ...rules,
    background: v.optional(
      v.pipe(
        objectOnly(v.strictObject(rules)),
        v.description("Permissions in background turns. Only an `ask` here makes a background turn wait."),
      ),
    ),
    approvalTimeout: v.optional(
      v.pipe(
        v.string(),
        v.check((text) => {
          const ms = parseDuration(text);
          return ms !== undefined && ms >= 1000 && ms <= LONGEST_MS;
        }, "a duration from 1s to 24d, such as 30m or 8h"),
        v.description("How long a call waits for its decision. Default: 24h."),
      ),
    ),
  }),
);
