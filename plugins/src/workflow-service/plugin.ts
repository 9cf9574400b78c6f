import { definePlugin, optional, ports } from "@portico/core";
import { callbackContract } from "./contracts/callback-contract.ts";
import { approvalPagesContract } from "./contracts/approval-pages-contract.ts";
import { workflowServiceConfig } from "./config.ts";
import { workflowServiceContract } from "./contract.ts";
import { definitionTests } from "./definition/definition-tests.ts";
import { workflowEditingContract } from "./editing-contract.ts";
import { createGrants } from "./access/grants.ts";
import { serviceGuard, serviceScheme } from "./access/guards.ts";
import { approvalPages } from "./routes/approve.ts";
import { cancel, start, trigger } from "./routes/start.ts";
import { decide } from "./routes/decide.ts";
import { checkDefinition, readDefinitionSchema, readDefinitionText, saveDefinition, testDefinition } from "./routes/edit.ts";
import { followEvents } from "./routes/events.ts";
import { followGates, listGates } from "./routes/gates.ts";
import { listRuns, readRun } from "./routes/history.ts";
import { receiveCallback } from "./routes/receive-callback.ts";
import { readFile } from "./routes/read-file.ts";
import { readResumePlan, rerun, resume } from "./routes/resume.ts";
import {
  failingSchedules,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
  scheduleSource,
} from "./routes/schedules.ts";
import { countRuns, searchRuns } from "./routes/search.ts";
import { listVersions } from "./routes/versions.ts";
import type { WorkflowServices } from "./routes/workflow-services.ts";
import { listWorkflows, readDefinition, retiredDefinitions } from "./routes/workflows.ts";
import { runWorkflowTool } from "./run-workflow-tool.ts";
import { serviceAccess, tokenAccess } from "./access/service-access.ts";
import { workflowRuntime, workflowServiceRuntime } from "./workflow-runtime.ts";

/** Workflows that administrators deploy: triggered, followed, approved and looked up by programs (specification 4.2). */
export const workflowService = definePlugin({
  name: "workflow-service",
  summary: "Workflows: start and follow runs, decide gates, and read the history.",
  config: workflowServiceConfig,
  needs: {
    runtime: workflowRuntime,
    audit: optional(ports.audit),
    access: serviceAccess,
    log: ports.log,
    engine: ports.engine,
    signing: ports.signing,
    sealing: ports.sealing,
    // Without users of an instance, only bindings that name no readers are readable.
    identity: optional(ports.identity),
    clock: ports.clock,
    ids: ports.ids,
    // Without it, the schedules of definitions start nothing.
    schedules: optional(ports.schedules),
    // Without it, cases of definitions cannot be executed here.
    tests: optional(definitionTests),
    notifications: optional(ports.notifications),
  },
  contract: { ...workflowServiceContract, ...workflowEditingContract, ...approvalPagesContract, ...callbackContract },
  security: { service: serviceScheme },
  provides: ({ token, tokenRotation, ...runtime }) => [
    workflowServiceRuntime(runtime),
    tokenAccess({ token, rotation: tokenRotation }),
    runWorkflowTool(),
  ],
  guards: ({ access }) => ({ service: serviceGuard(access) }),
  setup(given, _settings, scope) {
    const closing = new AbortController();
    scope.onClose(() => closing.abort());
    given.schedules?.define(scheduleSource(given.runtime));
    if (given.schedules) given.notifications?.define(failingSchedules(given.runtime, given.schedules));
    const services: WorkflowServices = { ...given, grants: createGrants(given), closing: closing.signal };
    return {
      workflows: listWorkflows(services),
      definition: readDefinition(services),
      versions: listVersions(services),
      trigger: trigger(services),
      events: followEvents(services),
      runs: listRuns(services),
      searchRuns: searchRuns(services),
      countRuns: countRuns(services),
      gates: listGates(services),
      gateChanges: followGates(services),
      run: readRun(services),
      file: readFile(services),
      start: start(services),
      decide: decide(services),
      cancel: cancel(services),
      resume: resume(services),
      resumePlan: readResumePlan(services),
      rerun: rerun(services),
      schedules: listSchedules(services),
      triggerSchedule: triggerSchedule(services),
      pauseSchedule: pauseSchedule(services),
      resumeSchedule: resumeSchedule(services),
      definitionSchema: readDefinitionSchema(services),
      definitionText: readDefinitionText(services),
      saveDefinition: saveDefinition(services),
      checkDefinition: checkDefinition(services),
      testDefinition: testDefinition(services),
      ...retiredDefinitions,
      ...approvalPages(services),
      receiveCallback: receiveCallback(services),
    };
  },
});
