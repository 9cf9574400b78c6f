import { defineAdapter, definePort, keepingMs, optional, PENDING_SWEEP_MS, type Port, ports, type Secret } from "@portico/core";
import { ListChanges, registerProcess, SchemaChecks, sharedPorts } from "@portico/core/kit";
import * as v from "valibot";
import {
  type AwaitedCallback,
  createApprovalTokens,
  createCallbackTokens,
  type LinkedGate,
  type RunTokens,
} from "./access/run-tokens.ts";
import type { Binding } from "./access/task-scope.ts";
import { workflowRuntimeConfig, type WorkflowRuntimeOptions } from "./config.ts";
import { type EvaluateBeside, evaluateInThread } from "./expressions/expression-thread.ts";
import { type Catalogue, openCatalogue } from "./definition/open-catalogue.ts";
import { readDefinitions, type ReadWritten, readWritten } from "./definition/read-definitions.ts";
import { createDefinitionEditor, type DefinitionEditor } from "./definition/definition-editor.ts";
import { filesOfRun } from "./files/node-files.ts";
import { createRunFiles, type RunFiles } from "./files/run-files.ts";
import { createUsedGrants, type UsedGrants } from "./access/grants.ts";
import { RUN_CONCURRENCY } from "./contracts/limits.ts";
import { createRunWork, type RunInput } from "./runner/run-work.ts";
import type { RunnerServices } from "./runner/running.ts";
import { type Answers, createAnswers } from "./runs/answers.ts";
import { type Callbacks, createCallbacks } from "./runs/callbacks.ts";
import { createGates, type Gates } from "./runs/gates.ts";
import { LiveRuns } from "./runs/live-runs.ts";
import { RunHints } from "./runs/run-hints.ts";
import type { RunRecord } from "./runs/run-record.ts";
import { createRunRecords, type RunRecords } from "./runs/run-records.ts";
import { createStoredDefinitions, type StoredDefinitions } from "./runs/stored-definitions.ts";
import { VERSIONS_COUNTED } from "./runs/version-use.ts";
import { SecretKeeper } from "./secrecy/secret-keeper.ts";
import { createIsLive, createCancelRun, settleRuns } from "./service/stop-runs.ts";
import { createNodeTable } from "./kinds/node-table.ts";
import { createStartChild } from "./service/start-child.ts";
import { createStartRun, RUN_KIND, type StartRun } from "./service/start-runs.ts";
import { createKeyedStarts, type KeyedStarts } from "./service/keyed-starts.ts";
import { createPendingInputs, type PendingInputs } from "./service/pending-inputs.ts";
import { createRunSlots, replacedBy, type RunSlots } from "./service/run-slots.ts";
import { waitingGates } from "./service/notified-states.ts";
import { createSweep } from "./service/sweep-runs.ts";

/** The parts that the plugins and adapters of this area share. */
export interface WorkflowRuntime {
  /** Changes with every start of the process. */
  readonly instance: string;
  /** Hints between processes that share the runs. Undefined in an instance of one process. */
  readonly hints: RunHints | undefined;
  /** Whether a living process accepted a run or executes it, so that its events can be followed. Throws EngineUnavailable. */
  isLive(run: RunRecord): Promise<boolean>;
  readonly catalogue: Catalogue;
  /** The definitions that runs started with. */
  readonly definitions: StoredDefinitions;
  /** Reads the text of a definition. */
  readonly readText: ReadWritten;
  /** Reads, checks and writes definitions for editors. */
  readonly editor: DefinitionEditor;
  readonly runs: RunRecords;
  /** The files of runs. Undefined without storage for them. */
  readonly files: RunFiles | undefined;
  readonly live: LiveRuns;
  /** The answers from outside for which nodes wait: the decisions of gates and the events of callbacks. */
  readonly answers: Answers;
  readonly gates: Gates;
  /** Tells the followers of open gates when they change. */
  readonly gateChanges: ListChanges;
  readonly callbacks: Callbacks;
  readonly approvalTokens: RunTokens<LinkedGate>;
  readonly callbackTokens: RunTokens<AwaitedCallback>;
  readonly usedGrants: UsedGrants;
  /** The runs that were started with an `Idempotency-Key`. */
  readonly keyedStarts: KeyedStarts;
  readonly bindings: readonly Binding[];
  readonly startRun: StartRun;
  /** The runs of workflows with `concurrency`. */
  readonly slots: RunSlots;
  /** The inputs of runs of workflows with `debounce`. */
  readonly pendingInputs: PendingInputs;
  readonly evaluateBeside: EvaluateBeside;
  readonly keeper: SecretKeeper;
  /** Checks values from outside by the schemas of definitions. */
  readonly checks: SchemaChecks;
  /** Durable. False if the run has ended or does not exist. Throws errors of stores. */
  cancelRun(runId: string, reason: string): Promise<boolean>;
  /** Removes data that is no longer needed, as the hourly chore does. Logs failures, and retries them the next time. */
  sweep(closing: AbortSignal): Promise<void>;
}

/** The port of the runtime; `workflowServiceRuntime` fills it. */
export const workflowRuntime: Port<WorkflowRuntime> = definePort<WorkflowRuntime>("workflow-service/runtime");

/** Which source of documents has the definitions. */
const SOURCE = "workflows";
const SETTLE_MS = 5 * 60_000;
/** A signal is lost only with a process, so that the wait for the chore is rare. */
const REPAIR_MS = 30_000;
const SWEEP_MS = 60 * 60_000;
/** The first sweep runs soon, for services that do not run for an hour, but not at the start, which has enough work. */
const FIRST_SWEEP_MS = 60_000;

/**
 * The runtime of workflows: definitions, durable runs, their history (specification 3.2, 4.2). The area's plugin shows it to the outside. Takes
 * up the accepted runs when the app is ready.
 */
export const workflowServiceRuntime = defineAdapter({
  name: "workflow-service/runtime",
  port: workflowRuntime,
  needs: {
    documents: ports.documents,
    records: ports.records,
    log: ports.log,
    engine: ports.engine,
    nodes: ports.workflowNodes,
    // For `agent` nodes, if the instance has agents.
    turns: optional(ports.backgroundTurns),
    // For the files of runs: without it, runs have none.
    blobs: optional(ports.blobs),
    // For `attachment` nodes.
    userFiles: ports.userFiles,
    identity: optional(ports.identity),
    sealing: ports.sealing,
    signing: ports.signing,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    usage: optional(ports.usage),
    notifications: optional(ports.notifications),
    // Set if several processes share the runs.
    bus: optional(ports.bus),
    presence: optional(ports.presence),
  },
  async open(given, options: WorkflowRuntimeOptions, scope): Promise<WorkflowRuntime> {
    const { records, log, engine, clock, ids, telemetry, identity, turns, nodes } = given;
    const settings = v.parse(workflowRuntimeConfig, options);
    const documents = given.documents.find(({ id }) => id === SOURCE);
    if (!documents) throw new TypeError(`No source of documents is called ${SOURCE}`);
    const secrets = revealed(settings.secrets);
    const instance = ids.uuid();
    const table = createNodeTable(nodes, {
      ...{ hasAgents: turns !== undefined, hasLinks: settings.publicUrl !== undefined },
      replaced: settings.replacedKinds,
    });
    const loading = { types: table.rules, secretNames: new Set(Object.keys(secrets)) };
    const load = readDefinitions(loading, { clock, log: telemetry.log }, scope);
    const catalogue = await openCatalogue({ documents, load, log: telemetry.log }, scope);
    const editor = createDefinitionEditor(
      {
        ...{ catalogue, documents, types: table.rules, secretNames: loading.secretNames, isEditable: settings.editable },
        // Checks have a thread of their own, so that starts and runs do not wait for them.
        loadWith: (types, within) => readDefinitions({ ...loading, types }, { clock, log: SILENT }, within),
      },
      scope,
    );
    const runs = createRunRecords(records, given.notifications);
    const shared = sharedPorts(given);
    const hints = shared.isShared ? new RunHints(shared.bus, clock) : undefined;
    const gateChanges = new ListChanges({ bus: shared.bus, clock, topic: "workflow-service/gates" });
    const isAlive = registerProcess(shared, { area: "workflow-service", id: instance }, scope);
    const isLive = createIsLive({ engine, instance, isAlive });
    const live = new LiveRuns(log, hints);
    const keeper = new SecretKeeper(secrets, given.sealing);
    if (settings.secretsRotation) {
      scope.onClose(
        settings.secretsRotation.follow((next) => {
          const values = revealed(next);
          return () => keeper.replace(values);
        }),
      );
    }
    const answers = createAnswers(records, keeper);
    const gates = createGates(answers);
    const callbacks = createCallbacks(answers);
    const approvalTokens = createApprovalTokens(given.signing);
    const callbackTokens = createCallbackTokens(given.signing);
    const usedGrants = createUsedGrants(records);
    const keyedStarts = createKeyedStarts(given);
    const definitions = createStoredDefinitions({
      ...{ records, clock },
      current(workflowId, hash) {
        const deployed = catalogue.find(workflowId);
        return deployed?.hash === hash ? deployed : undefined;
      },
      async load(stored) {
        return (await load({ ...stored, isStored: true })).definition;
      },
    });
    const readText = readWritten(clock, scope);
    const checks = new SchemaChecks(clock);
    scope.onClose(() => checks.close());
    const slots = createRunSlots({
      records,
      engine,
      clock,
      log: telemetry.log,
      find: async (runId) => (await runs.find(runId))?.value,
    });
    const pendingInputs = createPendingInputs({ records, engine, clock });
    const cancelRun = createCancelRun({ engine, runs, live, clock, slots, pendingInputs, hints, gateChanges });
    const evaluateBeside = evaluateInThread(clock, scope);
    const startRun = createStartRun({
      slots,
      evaluateBeside,
      cancelRun,
      engine,
      runs,
      definitions,
      clock,
      ids,
      instance,
      keeper,
      checks,
      telemetry,
      pathOf: (id) => catalogue.pathOf(id),
    });
    const files = given.blobs && createRunFiles({ records, blobs: given.blobs, clock, log: telemetry.log });
    const services: RunnerServices = {
      addresses: { publicUrl: settings.publicUrl, approvals: approvalTokens, callbacks: callbackTokens },
      ...{
        clock,
        answers,
        gates,
        gateChanges,
        callbacks,
        telemetry,
        usage: given.usage,
        kinds: table.kinds,
        nodes: table.nodes,
        turns,
      },
      evaluateBeside,
      owner: async (signal) => identity?.instanceOwner(signal),
      startChild: createStartChild({ catalogue, startRun, runs, definitions, readText, keeper, checks, evaluateBeside, log }),
      parametersOf: (workflowId) => catalogue.find(workflowId)?.parameters,
      cancelRun: async (runId, reason) => void (await cancelRun(runId, reason)),
      filesOf: ({ runId, grantUserId }, held, secrecy) =>
        files &&
        filesOfRun({ files, limits: settings.files, ids, userFiles: given.userFiles, runId, grantUserId, held, secrecy }),
    };
    engine.define<RunInput, void>(
      RUN_KIND,
      createRunWork({ runs, live, definitions, engine, log, services, keeper, slots, pendingInputs }),
      {
        onInterrupted: "resume",
        concurrency: RUN_CONCURRENCY,
      },
    );
    const sweep = createSweep({
      ...{ runs, answers, definitions, usedGrants, keyedStarts, eventLog: log, clock, log: telemetry.log, files },
      keepMs: keepingMs(settings.keepRuns),
    });
    given.notifications?.define(waitingGates({ runs, clock }));
    engine.chore("settle-workflow-runs", { everyMs: SETTLE_MS }, (signal) =>
      settleRuns({ engine, runs, live, clock, slots, pendingInputs, hints, gateChanges, instance }, signal),
    );
    const repairing = {
      cancel: async (runId: string, by: string) => void (await cancelRun(runId, replacedBy(by))),
      limitOf(workflowId: string) {
        const definition = catalogue.find(workflowId);
        return definition && (definition.concurrency?.limit ?? Number.MAX_SAFE_INTEGER);
      },
    };
    engine.chore("repair-workflow-slots", { everyMs: REPAIR_MS }, (signal) => slots.repair(repairing, signal));
    engine.chore("sweep-workflow-runs", { everyMs: SWEEP_MS, firstMs: FIRST_SWEEP_MS }, sweep);
    if (files) engine.chore("sweep-workflow-files", { everyMs: PENDING_SWEEP_MS }, files.sweep);
    engine.chore("count-workflow-versions", VERSIONS_COUNTED, async (signal) => {
      for (const workflowId of await definitions.workflowIds()) await runs.use.count(workflowId, clock.now(), signal);
    });
    scope.onReady(() => engine.ready());
    return {
      instance,
      hints,
      isLive,
      catalogue,
      definitions,
      editor,
      readText,
      runs,
      files,
      live,
      answers,
      gates,
      gateChanges,
      callbacks,
      approvalTokens,
      callbackTokens,
      usedGrants,
      keyedStarts,
      bindings: settings.bindings,
      startRun,
      slots,
      pendingInputs,
      evaluateBeside,
      keeper,
      checks,
      cancelRun,
      sweep,
    };
  },
});

/** Texts that authors are writing are not reported in the log. */
const SILENT = { warn() {} };

function revealed(secrets: Readonly<Record<string, Secret>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]));
}
