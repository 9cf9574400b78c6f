import type { ports } from "@portico/core";
import type { CallResult, Client } from "@portico/core/client";
import type { conversationsRunsContract } from "../contract.ts";

type Contract = typeof conversationsRunsContract;
type Receipt = CallResult<Contract["receipts"]>["receipts"][number];
type Message = CallResult<Contract["messages"]>["messages"][number];
type Trace = CallResult<Contract["trace"]>["turns"][number]["trace"];

/** One ended turn of a conversation, as the service keeps it. */
export interface RecordedTurn {
  readonly receipt: Receipt;
  /** What the user wrote. */
  readonly prompt: string;
  /** Of the agent and its tools. */
  readonly messages: readonly Message[];
  readonly trace?: Trace;
}

/** The turns of a run in the chosen branch of its conversation, the oldest first. */
export interface RecordedRun {
  readonly runId: string;
  readonly agentId: string;
  readonly turns: readonly RecordedTurn[];
}

/** A run cannot become a case. The message says why, for a person. */
export class NotRecordable extends Error {
  override readonly name = "NotRecordable";
}

/** Maximum turns of a recorded run, and pages of messages that are read for them. */
const TURNS = 50;
const PAGES = 20;
const MESSAGES_OF_PAGE = "200";
const TRACES_OF_PAGE = 20;

/** Reads what a service keeps of a run. Throws NotRecordable, and the errors of the calls. */
export async function readRecordedRun(
  calls: Pick<Client<Contract>, "run" | "receipts" | "messages" | "trace">,
  runId: string,
  signal: AbortSignal,
): Promise<RecordedRun> {
  const params = { id: runId };
  const run = await calls.run({ params, signal });
  if (run.status === "running") throw new NotRecordable("The run has not ended, or waits for a person");
  if (run.conversation_id === undefined || run.background) throw new NotRecordable("Only turns of conversations can be recorded");
  const { receipts, total = 0 } = await calls.receipts({ params, query: { limit: String(TURNS) }, signal });
  if (total > TURNS) throw new NotRecordable(`The run has more than ${TURNS} turns`);
  if (receipts.length === 0) throw new NotRecordable("The run has no receipts of ended turns");
  const [messages, traces] = await Promise.all([
    readMessages(calls, run.conversation_id, receipts, signal),
    readTraces(calls, runId, receipts.length, signal),
  ]);
  const byRequest = new Map(receipts.map((receipt) => [receipt.client_request_id, receipt]));
  const turns = exchangesOf(messages).flatMap(({ requestId, prompt, messages: own }): RecordedTurn[] => {
    const receipt = byRequest.get(requestId);
    if (!receipt) return [];
    // The answer that was made again last failed before it said anything.
    if (own.length === 0 && receipt.output !== "") throw new NotRecordable("The answer of a turn is in another branch");
    return [{ receipt, prompt, messages: own, trace: traces.get(receipt.receipt_id) }];
  });
  if (turns.length === 0) throw new NotRecordable("The conversation no longer has the messages of these turns");
  return { runId, agentId: run.agent_id, turns };
}

/** A message of the user, and the answer in the branch that is read. */
interface Exchange {
  /** Of the turn that answered: the user's own, unless the answer was made again. */
  requestId: string | undefined;
  readonly prompt: string;
  readonly messages: Message[];
}

function exchangesOf(messages: readonly Message[]): readonly Exchange[] {
  const exchanges: Exchange[] = [];
  for (const message of messages) {
    const { role, clientRequestId } = message;
    const parts = message.parts as readonly ports.MessagePart[];
    // The agent wrote it, and it stands for earlier messages.
    if (parts.some(({ type }) => type === "summary")) continue;
    const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    if (message.steers) throw new NotRecordable("The user said something to a turn while it went on, which a test cannot repeat");
    if (role === "user") {
      exchanges.push({ requestId: clientRequestId, prompt: texts.join("\n"), messages: [] });
      continue;
    }
    const exchange = exchanges.at(-1);
    if (!exchange) continue;
    exchange.requestId = clientRequestId ?? exchange.requestId;
    exchange.messages.push(message);
  }
  return exchanges;
}

/** The messages of the chosen branch of the conversation, back to the first one of the oldest receipt. */
async function readMessages(
  calls: Pick<Client<Contract>, "messages">,
  conversationId: string,
  [oldest]: readonly Receipt[],
  signal: AbortSignal,
): Promise<readonly Message[]> {
  let all: readonly Message[] = [];
  let before: number | undefined;
  for (let page = 0; page < PAGES; page++) {
    const query = { limit: MESSAGES_OF_PAGE, ...(before !== undefined && { before: String(before) }) };
    const found = await calls.messages({ params: { id: conversationId }, query, signal });
    all = [...found.messages, ...all];
    const hasOldest = all.some(({ role, clientRequestId }) => role === "user" && clientRequestId === oldest?.client_request_id);
    if (hasOldest || found.before === undefined) return all;
    before = found.before;
  }
  throw new NotRecordable("The conversation has too many messages");
}

async function readTraces(
  calls: Pick<Client<Contract>, "trace">,
  runId: string,
  turns: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Trace>> {
  const found = new Map<string, Trace>();
  for (let offset = 0; offset < turns; offset += TRACES_OF_PAGE) {
    const query = { limit: String(TRACES_OF_PAGE), offset: String(offset) };
    const page = await calls.trace({ params: { id: runId }, query, signal });
    for (const { receipt_id: id, trace } of page.turns) found.set(id, trace);
  }
  return found;
}
