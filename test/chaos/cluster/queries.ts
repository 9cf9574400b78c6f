import { connectAgent, type QueryEnd } from "@portico/client";
import { setTimeout as sleep } from "node:timers/promises";
import { CLUSTER_OWNER } from "../../harness/cluster.ts";
import { callUntilAnswered, jsonBody } from "./call.ts";
import { type Load, OpenItems, repeat, Report } from "./load.ts";
import { answerTo, DO } from "./model.ts";
import type { Scene } from "./stage.ts";

/** A submitted query and what its client was told. */
export interface Asked {
  readonly clientRequestId: string;
  readonly prompt: string;
  readonly isAborted: boolean;
  /** The joined pieces of text. */
  readonly text: string;
  readonly end: QueryEnd;
}

const CLIENTS = 4;
/** Queries of one session, so that conversations stay short. */
const PER_SESSION = 4;

/** Clients of `@portico/client` ask an agent with a tool that may not be repeated, in new and in existing sessions. */
export function queryLoad(stage: Scene): Load {
  const { cluster } = stage;
  const baseURL = cluster.url("agent");
  const asked: Asked[] = [];
  const refused: string[] = [];
  const open = new OpenItems();
  let number = 0;

  async function ask(client: ReturnType<typeof connectAgent>, sessionId: string | undefined): Promise<string | undefined> {
    const prompt = `${Math.random() < 0.6 ? DO : "say "}query ${++number}`;
    const isAborted = Math.random() < 0.1;
    const query = client.submit({ agentId: "helper", prompt, ...(sessionId !== undefined && { sessionId }) });
    const { clientRequestId } = query;
    return open.during(`${prompt} (${clientRequestId})`, async () => {
      let text = "";
      try {
        for await (const message of query) {
          text += message.type === "text" ? message.delta : "";
          if (isAborted && message.seq > 3) query.abort();
        }
        asked.push({ clientRequestId, prompt, isAborted, text, end: await query.ended });
      } catch (error) {
        refused.push(`${prompt} was refused: ${String(error)}`);
      }
      return (await query.started.catch(() => undefined))?.sessionId;
    });
  }

  return {
    name: "queries",
    open: () => open.list(),
    async run(signal) {
      await repeat(CLIENTS, signal, async (at) => {
        // Half of them begin with long polling, as browsers do.
        await using client = connectAgent({
          baseURL,
          token: CLUSTER_OWNER,
          ...(at % 2 === 0 && { transports: ["websocket"] as const }),
        });
        for (let round = 0; round < 5 && !signal.aborted; round++) {
          const session = async () => {
            let sessionId: string | undefined;
            for (let turn = 0; turn < PER_SESSION && !signal.aborted; turn++) {
              sessionId = await ask(client, sessionId);
              await sleep(Math.random() * 200);
            }
          };
          await Promise.all([session(), session()]);
        }
      });
    },
    async verify() {
      const report = await verifyQueries(stage, asked);
      report.wrong.push(...refused);
      return report;
    },
  };
}

/** Compares what clients were told with lookups, conversations and receipts. */
export async function verifyQueries({ cluster, effects }: Scene, asked: readonly Asked[]): Promise<Report> {
  const report = new Report();
  const url = cluster.url("agent");
  const headers = { "x-agent-service-token": CLUSTER_OWNER };
  const get = async (path: string) => (await callUntilAnswered(url + path, { headers })).body;
  const runs = new Map<
    string,
    { readonly messages: readonly any[]; readonly receipts: readonly any[]; readonly status: string }
  >();

  for (const { clientRequestId, prompt, isAborted, text, end } of asked) {
    report.count(end.status);
    const lookup = { agentId: "helper", requests: [{ clientRequestId }] };
    const { status, sessionId, executionWitness } = await lookUp(url, headers, lookup);
    const is = (holds: boolean, otherwise: string) => report.expect(holds, `${prompt} (${end.status}): ${otherwise}`);
    is(status === "committed" && executionWitness === "user-message", `the lookup says ${status}, ${executionWitness}`);
    if (sessionId === undefined) continue;
    const runId = sessionId.replace("ses_", "run_");
    if (!runs.has(runId)) {
      const { conversation_id: id, status: state } = await get(`/api/runs/${runId}`);
      const { messages } = await get(`/api/conversations/${id}/messages?limit=200`);
      const { receipts } = await get(`/api/runs/${runId}/receipt`);
      runs.set(runId, { messages, receipts, status: state });
    }
    const { messages, receipts, status: state } = runs.get(runId)!;
    is(state === "idle" || state === "failed", `its run is ${state}`);
    const own = messages.filter((message) => message.clientRequestId === clientRequestId);
    is(own.filter(({ role }) => role === "user").length === 1, "its message is not in the conversation once");
    const mine = receipts.filter(({ input }) => input === prompt);
    is(mine.length === 1, `it has ${mine.length} receipts`);
    const [turns, tools] = [effects.times(`turn ${prompt}`), effects.times(`tool ${prompt}`)];
    const calls = prompt.startsWith(DO) ? 1 : 0;
    is(turns <= 1 && tools <= calls, `the model was asked ${turns} times, the tool was called ${tools} times`);
    const outcome = mine[0]?.outcome.status;
    switch (end.status) {
      case "completed":
        is(text === answerTo(prompt), `its client got: ${text}`);
        is(turns === 1 && tools === calls, `the model was asked ${turns} times, the tool was called ${tools} times`);
        is(mine[0]?.output === text && outcome === "success", `its receipt says ${outcome}: ${mine[0]?.output}`);
        break;
      case "failed":
        is(end.code === "process_restart", `it failed with ${end.code}: ${end.error}`);
        is(outcome === "failed", `its receipt says ${outcome}`);
        break;
      case "interrupted":
        is(isAborted && end.terminal.reason === "user_stop", `it was interrupted by ${end.terminal.reason}`);
        is(outcome !== "success", `its receipt says ${outcome}`);
        break;
      default:
        is(false, end.reason);
    }
    if (end.status !== "completed") is(answerTo(prompt).startsWith(text), `its client got: ${text}`);
  }
  return report;
}

/** The result of looking up one submission. While the registry cannot be reached, it is `unknown`. */
export async function lookUp(url: string, headers: Readonly<Record<string, string>>, lookup: object): Promise<any> {
  for (;;) {
    const { status, body } = await callUntilAnswered(
      `${url}/api/query/client-requests/lookup`,
      jsonBody(headers, "POST", lookup),
    );
    if (status !== 200) throw new Error(`A lookup has ${status}`);
    if (body.results[0].status !== "unknown") return body.results[0];
    await sleep(200);
  }
}
