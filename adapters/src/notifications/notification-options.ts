import { fromEnv, ports, secret } from "@portico/core";
import * as v from "valibot";

const { NOTIFICATION_KINDS } = ports;
/** The ports of schedules keep the ends of ten starts. */
const MOST_FAILURES = 10;
const WEEK_MINUTES = 7 * 24 * 60;
/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md: keys have 24 to 64 bytes. */
const [LEAST_KEY_BYTES, MOST_KEY_BYTES] = [24, 64];

/** What an instance tells its operators, and where: the options of `webhookNotifications`, which presets have as settings. */
export const notificationsSettings = {
  notifications: v.optional(
    v.pipe(
      v.strictObject({
        url: v.optional(
          fromEnv(
            "PORTICO_NOTIFICATIONS_URL",
            v.pipe(
              secret(),
              v.check((url) => isTarget(url.reveal()), "an http or https address without user name"),
            ),
            "Address that gets a request for each notification. Default: notifications are off.",
          ),
        ),
        secret: v.optional(
          fromEnv(
            "PORTICO_NOTIFICATIONS_SECRET",
            v.pipe(
              secret(),
              v.check((key) => signingKey(key.reveal()) !== undefined, '"whsec_" and 24 to 64 random bytes in base64'),
            ),
            "Key that signs the requests, as Standard Webhooks has it: `whsec_` and 24 to 64 random bytes in base64.",
          ),
        ),
        on: v.optional(
          fromEnv(
            "PORTICO_NOTIFICATIONS_ON",
            v.pipe(v.array(v.picklist(NOTIFICATION_KINDS)), v.maxLength(NOTIFICATION_KINDS.length)),
            "What is told.",
          ),
          [...NOTIFICATION_KINDS],
        ),
        scheduleFailures: v.optional(
          fromEnv(
            "PORTICO_NOTIFICATIONS_SCHEDULE_FAILURES",
            v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_FAILURES)),
            "Failures of a schedule in a row after which it is told.",
          ),
          3,
        ),
        decisionMinutes: v.optional(
          fromEnv(
            "PORTICO_NOTIFICATIONS_DECISION_MINUTES",
            v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(WEEK_MINUTES)),
            "Minutes that an approval or a gate waits before it is told.",
          ),
          10,
        ),
        limitShare: v.optional(
          fromEnv(
            "PORTICO_NOTIFICATIONS_LIMIT_SHARE",
            v.pipe(v.number(), v.minValue(0.01), v.maxValue(1)),
            "The part of a limit of a day that is used when it is told: 0.8 is 80 %.",
          ),
          0.8,
        ),
      }),
      v.check(({ url, secret: key }) => (url === undefined) === (key === undefined), "url and secret together"),
    ),
    {},
  ),
};

/** The bytes of a signing key in the form of Standard Webhooks. Undefined for another text. */
export function signingKey(text: string): Buffer | undefined {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(text) ?? [];
  const key = encoded === undefined ? undefined : Buffer.from(encoded, "base64");
  return key && key.length >= LEAST_KEY_BYTES && key.length <= MOST_KEY_BYTES ? key : undefined;
}

function isTarget(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
}
