/**
 * The first characters of every credential that Portico makes, by kind. Programs that pass on texts of callers, such as the model proxy,
 * recognise credentials by them. Signed links of media have none: everybody who has such a link may read its one file.
 */
export const CREDENTIAL_PREFIXES = {
  /** A token of the agent service that the instance made. */
  agentToken: "agent_",
  /** A token of the workflow service that the instance made. */
  workflowToken: "workflow_",
  shortLivedWorkflowToken: "workflow_until_",
  session: "session_",
  signInCode: "signin_",
  safeToken: "service_",
  webhookSecret: "whs_",
  executionGrant: "grant_",
  editingGrant: "edit_",
  approvalLink: "approval_",
  /** The address of a `callback` node of a workflow. */
  callback: "callback_",
} as const;

/** The prefix of one kind of credentials. */
export type CredentialPrefix = (typeof CREDENTIAL_PREFIXES)[keyof typeof CREDENTIAL_PREFIXES];
