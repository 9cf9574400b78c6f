import { setTimeout as sleep } from "node:timers/promises";
import { CLUSTER_OWNER } from "../../harness/cluster.ts";
import { callOnce, callUntilAnswered, jsonBody } from "./call.ts";
import { type Load, OpenItems, repeat, Report } from "./load.ts";
import { answerTo, DO } from "./model.ts";
import type { Scene } from "./stage.ts";

const SENDERS = 3;

/** External systems trigger an agent in the background. */
export async function webhookLoad({ cluster, effects }: Scene): Promise<Load> {
  const url = cluster.url("agent");
  const headers = { "x-agent-service-token": CLUSTER_OWNER };
  const event = { promptTemplate: "{{text}}", toolIds: ["effects/act"] };
  const saved = await callUntilAnswered(`${url}/api/agents/hooked/webhooks/events/work`, jsonBody(headers, "PUT", event));
  const trigger = { authorization: `Bearer ${saved.body.secret}` };
  /** Texts, and whether the service has acknowledged them. */
  const sent = new Map<string, boolean>();
  const wrong: string[] = [];
  const open = new OpenItems();

  const runsOf = async (): Promise<readonly any[]> =>
    (await callUntilAnswered(`${url}/api/runs?agent_id=hooked&limit=100000`, { headers })).body.runs;

  return {
    name: "webhooks",
    open: () => open.list(),
    run: (signal) =>
      repeat(SENDERS, signal, async () => {
        const text = `${Math.random() < 0.5 ? DO : "say "}event ${sent.size}`;
        sent.set(text, false);
        const body = { event: "work", payload: { text } };
        const answer = await open.during(text, () => callOnce(`${url}/api/webhook/hooked`, jsonBody(trigger, "POST", body)));
        sent.set(text, answer?.status === 200);
        if (answer && answer.status !== 200 && answer.status < 500) wrong.push(`${text} was refused with ${answer.status}`);
        await sleep(800 + Math.random() * 1200);
      }),
    async verify() {
      const report = new Report();
      report.wrong.push(...wrong);
      const runs = await runsOf();
      for (const [text, isAccepted] of sent) {
        const own = runs.filter(({ title }) => title === text);
        const is = (holds: boolean, otherwise: string) => report.expect(holds, `${text}: ${otherwise}`);
        is(
          own.length <= 1 && (own.length === 1 || !isAccepted),
          `${isAccepted ? "accepted" : "unanswered"}, and has ${own.length} runs`,
        );
        const [turns, tools] = [effects.times(`turn ${text}`), effects.times(`tool ${text}`)];
        const calls = text.startsWith(DO) ? 1 : 0;
        is(turns <= 1 && tools <= calls, `the model was asked ${turns} times, the tool was called ${tools} times`);
        if (!isAccepted) report.count("unanswered");
        const [run] = own;
        if (!run) {
          report.count("not accepted");
          continue;
        }
        report.count(run.status);
        const { receipts } = (await callUntilAnswered(`${url}/api/runs/${run.run_id}/receipt`, { headers })).body;
        is(receipts.length === 1, `it has ${receipts.length} receipts`);
        if (run.status === "completed")
          is(
            turns === 1 && tools === calls && receipts[0]?.output === answerTo(text),
            `its receipt says: ${receipts[0]?.output}`,
          );
        else {
          is(run.status === "failed" && run.failure_reason === "process_restart", `it is ${run.status}: ${run.failure_reason}`);
          is(receipts[0]?.outcome.status === "failed", `its receipt says ${receipts[0]?.outcome.status}`);
        }
      }
      const texts = new Set(sent.keys());
      for (const { title } of runs) report.expect(texts.has(title), `a run of "${title}", which was not sent`);
      return report;
    },
  };
}
