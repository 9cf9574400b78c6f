import { storedUserAccounts } from "@portico/adapters/tools/mcp-user-accounts";
import { type App, ports } from "@portico/core";
import { createStoredFiles, type StoredFiles } from "@portico/plugins/attachments-media/stored-files";
import { createStoredRuns, type StoredRuns } from "@portico/plugins/conversations-runs/stored-runs";
import { createStoredWorkflowRuns, type StoredWorkflowRuns } from "@portico/plugins/workflow-service/stored-runs";

/** Everything that an instance keeps of its users, by area. */
export interface UserStores {
  readonly runs: StoredRuns;
  readonly workflowRuns: StoredWorkflowRuns;
  readonly files: StoredFiles;
  readonly accounts: ReturnType<typeof storedUserAccounts>;
}

/** The ports that `userStoresOf` needs. */
export const USER_PORTS = [ports.records, ports.log, ports.blobs];

/** The stores of an app with these ports. */
export function userStoresOf(app: App): UserStores {
  const [records, log] = [app.port(ports.records), app.port(ports.log)];
  const clock = app.port(ports.clock);
  const stores = { records, blobs: app.port(ports.blobs), clock };
  const messages = app.port(ports.telemetry).log;
  return {
    runs: createStoredRuns({ records, log, clock, ids: app.port(ports.ids) }),
    workflowRuns: createStoredWorkflowRuns({ ...stores, log, messages }),
    files: createStoredFiles({ ...stores, log: messages }),
    accounts: storedUserAccounts(records),
  };
}
