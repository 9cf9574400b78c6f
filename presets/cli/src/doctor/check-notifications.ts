import { createPatientFetch } from "@portico/adapters/outbound/patient-fetch";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "notifications";
/** Longest wait for an answer. */
const ANSWER_MS = 10_000;

/** Whether the address of notifications answers. Any status is an answer, because receivers take only POST. Messages never name the address. */
export async function checkNotifications({ notifications: { url }, outbound }: PlatformSettings): Promise<readonly Finding[]> {
  if (!url) return [];
  const { fetch, close } = createPatientFetch(outbound);
  try {
    const { status, body } = await fetch(url.reveal(), {
      method: "HEAD",
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    await body?.cancel();
    return [fine(ABOUT, `the address answers (${status} to HEAD)`)];
  } catch (error) {
    return [wrong(ABOUT, `the address does not answer (${codeOf(error)})`, "start the receiver, or correct notifications.url")];
  } finally {
    await close();
  }
}

/** The code of the innermost cause that has one. Messages of errors quote addresses. */
function codeOf(error: unknown): string {
  let found = "unreachable";
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    const { code, name } = each as { readonly code?: unknown; readonly name: string };
    if (name === "TimeoutError") found = "timeout";
    if (typeof code === "string" && /^\w{1,64}$/.test(code)) found = code;
  }
  return found;
}
