import { setTimeout as sleep } from "node:timers/promises";
import { CALLERS, PROTOCOLS } from "../../harness/callers.ts";
import { CLUSTER_OWNER } from "../../harness/cluster.ts";
import { callOnce, callUntilAnswered, jsonBody } from "./call.ts";
import { type Load, OpenItems, repeat, Report } from "./load.ts";
import { answerTo } from "./model.ts";
import { PROVIDER, type Scene } from "./stage.ts";

const CALLERS_AT_ONCE = 4;

/** Programs stream answers through the model proxy, in both protocols. */
export async function streamLoad({ cluster }: Scene): Promise<Load> {
  const owner = { "x-agent-service-token": CLUSTER_OWNER };
  const issue = jsonBody(owner, "POST", { providerId: PROVIDER });
  const { token } = (await callUntilAnswered(`${cluster.url("agent")}/api/safe-tokens`, issue)).body;
  const origin = new URL(cluster.url("proxy")).origin;
  const report = new Report();
  const open = new OpenItems();
  let number = 0;

  async function stream(at: number): Promise<void> {
    const caller = CALLERS[PROTOCOLS[at % PROTOCOLS.length]!];
    const prompt = `stream ${++number}`;
    const request = jsonBody({ authorization: `Bearer ${token}` }, "POST", caller.request(prompt, { stream: true }));
    const answer = await open.during(prompt, () => callOnce(origin + caller.path, request));
    if (!answer) return report.count("cut");
    const text = answer.bytes.toString();
    if (answer.status !== 200) {
      report.expect(answer.status >= 500, `${prompt} has ${answer.status}: ${text}`);
      return report.count("refused");
    }
    // An answer with a normal end must be complete. Otherwise the connection breaks, or the stream contains an error.
    try {
      caller.assertStream(text);
      report.expect(
        answerTo(prompt)
          .split(" ")
          .every((word) => text.includes(word)),
        `${prompt} misses words`,
      );
      report.count("whole");
    } catch {
      caller.assertBrokenStream(text);
      report.count("said to be broken");
    }
  }

  return {
    name: "streams",
    open: () => open.list(),
    run: (signal) =>
      repeat(CALLERS_AT_ONCE, signal, async (at) => {
        await stream(at);
        await sleep(Math.random() * 300);
      }),
    verify: async () => report,
  };
}
