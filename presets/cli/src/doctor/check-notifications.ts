import { randomUUID } from "node:crypto";
import { codeOf, sendMessage } from "@portico/adapters/notifications/send-message";
import { createPatientFetch } from "@portico/adapters/outbound/patient-fetch";
import { createSystemClock } from "@portico/core";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "notifications";
/** Longest wait for an answer. */
const ANSWER_MS = 10_000;

/**
 * Whether the address of notifications answers. With `call`, whether it accepts a signed notification of the type `test`. Without, any status is an
 * answer, because receivers take only POST. Messages never name the address.
 */
export async function checkNotifications(
  { notifications: { url, secret }, outbound }: PlatformSettings,
  { call }: { readonly call: boolean },
): Promise<readonly Finding[]> {
  if (!url || !secret) return [];
  const connections = createPatientFetch(outbound);
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    if (call) {
      const body = JSON.stringify({ type: "test", timestamp: new Date().toISOString(), data: {} });
      const target = { url, secret, clock: createSystemClock(), connections };
      const sent = await sendMessage(target, { id: `msg_${randomUUID()}`, body }, signal);
      if (sent.isDelivered) return [fine(ABOUT, "the receiver accepts a notification of the type test")];
      return [wrong(ABOUT, `the receiver does not accept a notification (${sent.code})`, FIX)];
    }
    const { status, body } = await connections.fetch(url.reveal(), { method: "HEAD", redirect: "manual", signal });
    await body?.cancel();
    return [fine(ABOUT, `the address answers (${status} to HEAD)`)];
  } catch (error) {
    return [wrong(ABOUT, `the address does not answer (${codeOf(error)})`, FIX)];
  } finally {
    await connections.close();
  }
}

const FIX = "start the receiver, or correct notifications.url or notifications.secret";
