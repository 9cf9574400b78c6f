import { parseDuration, record } from "@portico/core";
import * as v from "valibot";

const LEAST_MS = 1000;
/** The longest wait that a Node.js timer supports. */
const MOST_MS = 2 ** 31 - 1;

const permission = v.picklist(["allow", "ask", "deny"]);
const ruleOf = (level: string) => v.optional(v.pipe(permission, v.description(`For tools of risk level \`${level}\`.`)));

/** The instance's rules for the tools of agents. */
export const toolPolicySchema = v.optional(
  v.pipe(
    v.strictObject({
      tools: v.optional(v.pipe(record(v.string(), permission), v.description("`allow`, `ask` or `deny`, by tool ID."))),
      riskLevels: v.optional(
        v.pipe(
          v.strictObject({ low: ruleOf("low"), medium: ruleOf("medium"), high: ruleOf("high"), critical: ruleOf("critical") }),
          v.description("The same by risk level, for tools without a rule of their own."),
        ),
      ),
      approvalTimeout: v.optional(
        v.pipe(
          v.string(),
          v.check((text) => {
            const ms = parseDuration(text);
            return ms !== undefined && ms >= LEAST_MS && ms <= MOST_MS;
          }, "a duration from 1s to 24d, such as 30m or 8h"),
          v.description("How long a call waits for a person's decision, where the agent's own policy does not say."),
        ),
        "24h",
      ),
    }),
    v.description(
      "Which tools run at once, wait for a person's approval, or never run. `toolPolicy` in an `agent.json` can only be stricter.",
    ),
  ),
  {},
);

/** The rules as the area of conversations and runs takes them. */
export function toolPolicyOf({ approvalTimeout, ...rules }: v.InferOutput<typeof toolPolicySchema>) {
  return { ...rules, approvalTimeoutMs: parseDuration(approvalTimeout) };
}
