import { auditActor, type ports, type RequestHead, retryWhileStoreAway, ServiceError, withoutEnd } from "@portico/core";
import { isTerminal, readFinalOutputs, type RunRecord, toServiceError } from "@portico/plugins/workflow-service/followed-runs";
import type { WorkflowRuntime } from "@portico/plugins/workflow-service/runtime";
import type { ToolAnswer, ToolCall, Tools } from "../server/tool-server.ts";
import { gateOf, type OpenGate } from "./open-gates.ts";

export interface WorkflowToolsGiven {
  readonly runtime: WorkflowRuntime;
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly audit: ports.Audit | undefined;
  /** `""`: not known. */
  readonly publicUrl: string;
  readonly closing: AbortSignal;
}

/** Workflows as tools: a call starts a run, and waits for its end. */
export function workflowTools(given: WorkflowToolsGiven): Tools<RequestHead> {
  const { runtime, log } = given;
  return {
    list: () =>
      runtime.catalogue
        .list()
        .filter(({ isMcpTool }) => isMcpTool)
        .map(({ id, name, description, parameters }) => ({
          ...{ name: id, title: name, inputSchema: parameters },
          description: description === "" ? name : description,
        }))
        .toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    async call(call) {
      const definition = runtime.catalogue.find(call.name);
      if (!definition?.isMcpTool) return undefined;
      let runId: string;
      try {
        ({ runId } = await runtime.startRun({ definition, parameters: call.arguments }));
      } catch (error) {
        return refused(toServiceError(error));
      }
      const followed = await follow(given, { runId, nodes: definition.graph.nodes }, call);
      if (call.cancelled.aborted) {
        await cancel(given, runId, call.who);
        return { text: `Run ${runId} was cancelled`, isError: true };
      }
      const address = addressOf(given, { runId, workflowId: definition.id });
      if (followed === "over") return { text: `Run ${runId} goes on. Read how it ends at ${address}` };
      if (followed !== "ended") {
        const { run, title } = followed;
        const place = run.runId === runId ? "" : `, which run ${run.runId} of the workflow ${run.workflowId} has opened for it`;
        return {
          text: `Run ${runId} waits for a person at the gate ${JSON.stringify(title)}${place}. It goes on when the person has decided. Read it at ${addressOf(given, run)}`,
        };
      }
      const run = (await runtime.runs.find(runId))?.value;
      return endOf(run, { runId, address, outputs: () => readFinalOutputs(log, runId) });
    },
  };
}

/** Tells the progress of a run until it has ended, waits for a person, or nothing waits for it any longer. */
async function follow(
  { runtime, clock }: WorkflowToolsGiven,
  { runId, nodes }: { readonly runId: string; readonly nodes: ReadonlyMap<string, { readonly name?: string | undefined }> },
  { over, progress }: ToolCall<RequestHead>,
): Promise<"ended" | "over" | OpenGate> {
  const begun = new Set<string>();
  let halves = 0;
  try {
    const gate = await gateOf({ runtime, clock }, runId, over, async (entry) => {
      const { kind, nodeId } = entry;
      const node = nodes.get(nodeId);
      // Nodes inside others are parts of them, and `onFailure` is not counted.
      if (!node || (kind !== "start" && kind !== "end")) return;
      // Progress has to grow, so a node that begins counts a half. A skipped node never begins.
      halves += kind === "end" && !begun.has(nodeId) ? 2 : 1;
      if (kind === "start") begun.add(nodeId);
      const status = kind === "start" ? "running" : entry.status;
      await progress({ progress: halves / 2, total: nodes.size, message: `${node.name ?? nodeId}: ${status}` });
    });
    return gate ?? "ended";
  } catch (error) {
    if (over.aborted) return "over";
    throw error;
  }
}

async function cancel(
  { runtime, audit, clock, telemetry, closing }: WorkflowToolsGiven,
  runId: string,
  head: RequestHead,
): Promise<void> {
  const cancelRun = () => runtime.cancelRun(runId, "cancelled by request");
  const fact = { action: "workflow-run.cancel", object: runId, who: auditActor({ role: "workflow" }, head) };
  try {
    await retryWhileStoreAway({ clock, signal: closing }, () => audit?.attempt(fact, cancelRun) ?? cancelRun());
  } catch (error) {
    telemetry.log.warn("A run that an MCP client cancelled goes on", { run: runId }, error);
  }
}

async function endOf(
  run: RunRecord | undefined,
  { runId, address, outputs }: { readonly runId: string; readonly address: string; readonly outputs: () => Promise<unknown> },
): Promise<ToolAnswer> {
  if (!run || !isTerminal(run.status)) return { text: `Run ${runId} goes on. Read how it ends at ${address}` };
  const { status, error } = run;
  if (status !== "completed") {
    const why = error ? `: ${error.code}: ${error.message}` : "";
    return { text: `Run ${runId} is ${status}${why}. Read it at ${address}`, isError: true };
  }
  const found = await outputs();
  return { text: found === undefined ? `Run ${runId} is completed. It has no outputs` : JSON.stringify(found) };
}

/** An error of a start, as a model can use it. Throws errors that are not declared. */
function refused(error: unknown): ToolAnswer {
  if (!ServiceError.is(error)) throw error;
  const { parameters } = error.details as {
    readonly parameters?: readonly { readonly path: string; readonly message: string }[];
  };
  const places = (parameters ?? []).map(({ path, message }) => `\n${path}: ${message}`);
  return { text: `${error.message}${places.join("")}`, isError: true };
}

/** Where a run is read. It is not a link with which the model could decide a gate. */
function addressOf(
  { publicUrl }: WorkflowToolsGiven,
  { runId, workflowId }: { readonly runId: string; readonly workflowId: string },
): string {
  return `${withoutEnd(publicUrl, "/")}/api/workflow/${encodeURIComponent(workflowId)}/runs/${encodeURIComponent(runId)}`;
}
