/** The configuration of preset `workflow`: all keys of a platform, so that one file serves every preset. */
export { type PlatformConfig as WorkflowConfig, platformSchema as workflowSchema } from "../settings/platform.ts";
