import { callerGuard, definePlugin, instanceScheme, optional, ports } from "@portico/core";
import { agentRuntime, agentRuntimePort } from "./runtime/agent-runtime.ts";
import { askedTurns } from "./runtime/asked-turns.ts";
import { backgroundTurns } from "./runtime/background-turns.ts";
import { queryChannel } from "./channel.ts";
import { conversationsRunsConfig } from "./config.ts";
import { conversationsRunsContract } from "./contract.ts";
import { agentErrors } from "./errors.ts";
import { listAgents } from "./routes/agents.ts";
import { askAgent, followQuery } from "./routes/ask.ts";
import { listBudgets } from "./routes/budgets.ts";
import { decideApproval, followApprovals, listApprovals, listConsents, revokeConsent } from "./routes/approvals.ts";
import { chooseBranch, clearConversation, listConversations, listMessages, readRunningTurn } from "./routes/conversations.ts";
import { memoryCalls } from "./routes/memory.ts";
import { handshake } from "./routes/handshake.ts";
import { fillPrompt, listPrompts } from "./routes/prompts.ts";
import { followUp, lookUpQuery, startQuery } from "./routes/queries.ts";
import { readReceiptSteps } from "./routes/receipt-steps.ts";
import { changeRun, listRuns, readReceipts, readRun, readTrace, runAgain, runtimeState } from "./routes/runs.ts";
import { steerQuery } from "./routes/steer.ts";
import { stopTurns } from "./routes/stop-turns.ts";
import { countRuns } from "./routes/count-runs.ts";
import { searchRuns } from "./routes/search-runs.ts";

/** Agents, conversations, durable turns, runs and receipts, and the realtime channel of queries (specification 4.6). */
export const conversationsRuns = definePlugin({
  name: "conversations-runs",
  summary: "Queries to agents, their progress, their runs, and conversations.",
  config: conversationsRunsConfig,
  needs: {
    runtime: agentRuntimePort,
    turns: ports.backgroundTurns,
    records: ports.records,
    log: ports.log,
    audit: optional(ports.audit),
    identity: ports.identity,
    agents: ports.agents,
    agentEngines: ports.agentEngines,
    models: ports.models,
    tools: ports.tools,
    clock: ports.clock,
    ids: ports.ids,
    areas: ports.areas,
    schedules: optional(ports.schedules),
  },
  contract: conversationsRunsContract,
  security: { instance: instanceScheme },
  provides: ({ background, version: _version, ...runtime }) => [agentRuntime(runtime), backgroundTurns(background), askedTurns()],
  channels: { queries: queryChannel },
  capabilities: () => ["realtime"],
  guards: ({ identity }) => ({ instance: callerGuard(identity, agentErrors) }),
  setup: (services, options) => ({
    handshake: handshake(services, options.version),
    agents: listAgents(services),
    prompts: listPrompts(services),
    fillPrompt: fillPrompt(services),
    runs: listRuns(services),
    searchRuns: searchRuns(services),
    countRuns: countRuns(services),
    run: readRun(services),
    changeRun: changeRun(services),
    runAgain: runAgain(services),
    runtimeState: runtimeState(services),
    receipts: readReceipts(services),
    receiptSteps: readReceiptSteps(services),
    trace: readTrace(services),
    approvals: listApprovals(services),
    approvalChanges: followApprovals(services),
    decideApproval: decideApproval(services),
    consents: listConsents(services),
    revokeConsent: revokeConsent(services),
    ...memoryCalls(services),
    start: startQuery(services),
    followUp: followUp(services),
    steer: steerQuery(services),
    lookup: lookUpQuery(services),
    ask: askAgent(services),
    events: followQuery(services),
    conversations: listConversations(services),
    messages: listMessages(services),
    chooseBranch: chooseBranch(services),
    runningTurn: readRunningTurn(services),
    clear: clearConversation(services),
    budgets: listBudgets(services),
    stopTurns: stopTurns(services),
  }),
});
