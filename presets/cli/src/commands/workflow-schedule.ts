import { defineCommand } from "citty";
import { printJson, serviceFlags, serviceOf } from "./workflow-runs.ts";

const oneFlags = {
  schedule: {
    type: "positional",
    required: true,
    valueHint: "workflow id/name",
    description: "Workflow and name of the schedule",
  },
  json: { type: "boolean", description: "Print a JSON object" },
  ...serviceFlags,
} as const;

const listCommand = defineCommand({
  meta: { name: "list", description: "List the schedules of the deployed workflows with their next times" },
  args: { json: { type: "boolean", description: "Print a JSON array" }, ...serviceFlags },
  async run({ args }) {
    const [{ scheduleTable }, service] = await Promise.all([import("../schedules/schedule-table.ts"), serviceOf(args)]);
    const schedules = await service.schedules();
    if (args.json) return printJson(schedules);
    if (schedules.length === 0) return console.error("No workflow has a schedule that is switched on.");
    console.log(scheduleTable(schedules, ({ workflowId }) => workflowId));
  },
});

const triggerCommand = defineCommand({
  meta: { name: "trigger", description: "Start a run now, as the schedule does, and print the run's id" },
  args: oneFlags,
  async run({ args }) {
    const name = await readName(args.schedule);
    const started = await (await serviceOf(args)).triggerSchedule(name);
    if (args.json) return printJson(started);
    console.log(started.runId);
  },
});

const pauseCommand = defineCommand({
  meta: { name: "pause", description: "Start no more runs of a schedule at its planned times" },
  args: oneFlags,
  async run({ args }) {
    const name = await readName(args.schedule);
    await (await serviceOf(args)).pauseSchedule(name);
    if (args.json) return printJson({ schedule: args.schedule, paused: true });
    console.log(`The schedule ${args.schedule} is paused.`);
  },
});

const resumeCommand = defineCommand({
  meta: { name: "resume", description: "Start runs of a paused schedule at its planned times again" },
  args: oneFlags,
  async run({ args }) {
    const name = await readName(args.schedule);
    await (await serviceOf(args)).resumeSchedule(name);
    if (args.json) return printJson({ schedule: args.schedule, paused: false });
    console.log(`The schedule ${args.schedule} is active.`);
  },
});

export const scheduleCommand = defineCommand({
  meta: { name: "schedule", description: "List, start, pause and resume the schedules of workflows" },
  subCommands: { list: listCommand, trigger: triggerCommand, pause: pauseCommand, resume: resumeCommand },
});

/** Throws CommandFailed (64) for a text that does not have the form `WORKFLOW/NAME`. */
async function readName(text: string): Promise<{ readonly id: string; readonly name: string }> {
  const [id, name, ...more] = text.split("/");
  if (id && name && more.length === 0) return { id, name };
  const { CommandFailed, EXIT } = await import("../exit-codes.ts");
  throw new CommandFailed("Write a schedule as WORKFLOW/NAME, such as digest/morning", EXIT.usage);
}
