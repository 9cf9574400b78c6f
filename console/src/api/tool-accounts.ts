import { toolAccountsContract } from "@portico/operator/tool-accounts/contract";
import type { Instance } from "./instance.ts";

/** Whether the instance has MCP servers that use accounts. An app without these calls has no such servers. */
export async function hasToolAccounts(instance: Instance, signal: AbortSignal): Promise<boolean> {
  return (await instance.client(toolAccountsContract).list({ signal })).accounts.length > 0;
}
