import { type CanRead, canReadAs } from "../task-scope.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/** What the caller may read: the service token stands for the instance's owner. */
export async function readerOf({ identity, runtime }: WorkflowServices, signal: AbortSignal): Promise<CanRead> {
  return canReadAs(await identity?.instanceOwner(signal), runtime.bindings);
}
