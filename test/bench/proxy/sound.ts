import type { Contestant } from "./contestants.ts";
import { CALL_PATHS, type Kind, requestBody, STREAM_CHUNKS } from "./workload.ts";

/** Makes one call and checks its answer, because a fast wrong answer would win every race. Throws if the answer is wrong. */
export async function assertSound(contestant: Contestant, kind: Kind): Promise<void> {
  const { origin, protocol, token } = contestant;
  const answer = await fetch(origin + CALL_PATHS[protocol], {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: requestBody(protocol, kind),
  });
  const text = await answer.text();
  const isWhole = answer.status === 200 && (kind === "plain" ? isWholeAnswer(text) : isWholeStream(text, protocol));
  if (!isWhole) throw new Error(`${contestant.name}: the ${kind} answer (status ${answer.status}) is not what the upstream said`);
}

function isWholeAnswer(text: string): boolean {
  const answer = JSON.parse(text) as { choices?: unknown; content?: unknown };
  return JSON.stringify(answer.choices ?? answer.content).includes("usually milliseconds, seldom seconds");
}

function isWholeStream(text: string, protocol: Contestant["protocol"]): boolean {
  const isEnded = protocol === "messages" ? text.endsWith('{"type":"message_stop"}\n\n') : text.endsWith("data: [DONE]\n\n");
  return isEnded && text.match(/ word\d\d/g)?.length === STREAM_CHUNKS;
}
