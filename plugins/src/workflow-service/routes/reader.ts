import { type CanRead, canReadAs } from "../task-scope.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/** The runs that the caller may read. The service token has the rights of the instance's owner. */
export async function readerOf({ identity, runtime }: WorkflowServices, signal: AbortSignal): Promise<CanRead> {
  return canReadAs(await identity?.instanceOwner(signal), runtime.bindings);
}
