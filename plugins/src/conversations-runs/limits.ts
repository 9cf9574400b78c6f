/** Default limit of runs in a list (specification 4.6). */
export const RUNS_LIMIT = 50;

/** Default and maximum number of receipts on a page (specification 4.6). */
export const RECEIPTS_LIMIT = 20;
export const RECEIPTS_LIMIT_MAXIMUM = 100;
/** Maximum offset of a page of receipts (specification 4.6). */
export const RECEIPTS_OFFSET_MAXIMUM = 10_000;

/** Requests of one lookup, and characters of an ID that a client makes (specification 4.6). */
export const LOOKUP_REQUESTS = 100;
export const CLIENT_ID_LENGTH = 256;

/** Model calls of one turn where the query asks for no number (specification 8). */
export const MAX_TURNS = 20;
/** Most model calls of one turn that a query or an agent can ask for (specification 8). */
export const MAX_TURNS_MAXIMUM = 100;

/** Of a call that waits for a person's decision: characters of the tool's description, and of a comment. */
export const APPROVAL_DESCRIPTION_CHARACTERS = 4096;
export const APPROVAL_COMMENT_CHARACTERS = 4096;
/** Characters of what an engine keeps of a turn that waits, and of one entry of the log with a part of it. */
export const PROGRESS_CHARACTERS = 64 * 1024 * 1024;
export const PROGRESS_PIECE_CHARACTERS = 2 * 1024 * 1024;

/** How long an admitted turn that does not execute yet counts toward the turns at once. */
export const ADMITTED_COUNTED_MS = 10_000;

/** Bytes of a query's body. */
export const QUERY_BYTES = 4 * 1024 * 1024;

/** Entries and characters of a query's metadata. */
export const METADATA_ENTRIES = 64;
export const METADATA_LENGTH = 4096;

/** Conversations and messages of a page. */
export const PAGE_LIMIT = 50;
export const PAGE_LIMIT_MAXIMUM = 200;

/** Characters of a run's title. */
export const TITLE_LENGTH = 512;

/** Characters of the error that a run keeps. The receipt has the whole. */
export const RUN_ERROR_CHARACTERS = 300;

/** Entries of the trace that a receipt keeps: how many at most, how many of the first; characters of a name. */
export const TRACE_ENTRIES = 200;
export const TRACE_FIRST_ENTRIES = 150;
export const TRACE_NAME_CHARACTERS = 100;

/** Traces of a page where no limit is asked for, and at most. */
export const TRACES_LIMIT = 5;
export const TRACES_LIMIT_MAXIMUM = 20;

/** How long a client may replay a request with identical IDs, and how long its ID is remembered (open points 7). */
export const AUTO_REPLAY_RETENTION_MS = 10 * 60_000;
export const TOMBSTONE_RETENTION_MS = 24 * 60 * 60_000;

/** How long missed events are kept for a client (open points 7). */
export const RETURN_MS = 2 * 60_000;

/**
 * How long a turn that has ended is remembered while its clients seem to be there: a connection that is dead may be noticed 45 s later, and
 * the two minutes count from then. And how many such turns of one client program.
 */
export const ENDED_TURNS_MS = RETURN_MS + 60_000;
export const ENDED_TURNS = 10_000;

/** Of a resume point, which travels with every event: characters and turns at most, and how many turns it lists by their whole ID. */
export const RESUME_POINT_CHARACTERS = 8 * 1024;
export const RESUME_POINT_TURNS = 100;
export const RESUME_POINT_NAMED_TURNS = 8;

/** Pause before a client's missed events are read again after a failure. */
export const REPLAY_PAUSE_MS = 1000;

/**
 * Of a turn that executes in another process: characters of its last events that are held, how often its log is read again for events that
 * are not written yet, and after how long a silence it is looked at without having been told. And how long a connection waits for news of
 * other processes before it begins without.
 */
export const FOLLOWED_CHARACTERS = 512 * 1024;
export const FOLLOWED_PATIENCE = 20;
export const FOLLOWED_SILENCE_MS = 3000;
export const FOLLOWING_WAIT_MS = 1000;

/**
 * Turns of other client programs that one connection watches: how many at once, how often their transcripts are read, also while the turn
 * waits for a person, and after how many silent reads the service looks whether the turn still runs.
 */
export const WATCHES_PER_SOCKET = 8;
export const WATCH_MS = 250;
export const WATCH_WAITING_MS = 2000;
export const WATCH_LOOKS = 20;

/** Waiting calls of which a follower is told. */
export const FOLLOWED_APPROVALS = 200;

/** How long readers of a turn's server-sent events wait before they connect again; after its end, a day. */
export const RECONNECT_MS = 3000;
export const STAY_AWAY_MS = 24 * 60 * 60_000;

/** Hints of other processes may be lost: stores are read again after this time. */
export const LOOK_AGAIN_MS = 3000;

/** How often a process publishes its open turns, and how long other processes believe a message. */
export const OPEN_TURNS_REPEAT_MS = 5000;
export const OPEN_TURNS_BELIEVED_MS = 15_000;
/** Open turns that one message to other processes has. */
export const OPEN_TURNS_PER_MESSAGE = 1000;

/** How long turns of another process are counted after the last message about them: longer than any turn is remembered. */
export const OTHERS_COUNTED_MS = 10 * 60_000;

/** How long a turn's messages wait until they are written down together. */
export const TRANSCRIPT_FLUSH_MS = 100;
/** Characters that a turn may have said and not written down; more makes it wait. */
export const TRANSCRIPT_UNWRITTEN = 1024 * 1024;

/** Characters of tools' results that a turn which broke off leaves in its conversation. */
export const LEFT_RESULTS_CHARACTERS = 8 * 1024 * 1024;

/** Limits of the part of a conversation that a turn gets: messages, and characters of their JSON. */
export const HISTORY_MESSAGES = 2000;
export const HISTORY_CHARACTERS = 8 * 1024 * 1024;

/** Changes from branch to branch that a conversation keeps. */
export const MOST_BRANCH_JUMPS = 256;

/** Characters of a summary that a conversation keeps. */
export const SUMMARY_CHARACTERS = 256 * 1024;

/** Of what an agent remembers of a user: documents and characters of each, by default and at most; characters of a document's name. */
export const MEMORY_DOCUMENTS = 50;
export const MEMORY_DOCUMENTS_MAXIMUM = 100;
export const MEMORY_CHARACTERS = 4000;
export const MEMORY_CHARACTERS_MAXIMUM = 10_000;
export const MEMORY_NAME_CHARACTERS = 64;
/** Of the same: characters of a first line that the model is shown, and of the texts that it is shown with its instructions. */
export const MEMORY_LINE_CHARACTERS = 100;
export const MEMORY_SHOWN_CHARACTERS = 20_000;

/** Delegation from run to run (open points 10). */
export const DELEGATION_DEPTH = 4;

/** Characters of JSON of one event at most, of all that waits for a connection at once, and from where on it is asked whether it took it. */
export const EVENT_CHARACTERS = 256 * 1024;
export const OUTSTANDING_CHARACTERS = 256 * 1024;
export const UNCONFIRMED_CHARACTERS = 64 * 1024;

/**
 * Characters of JSON of one kept message, of one piece of a transcript, and of parts of a receipt: each with its others fits into an entry
 * of the log, whatever bytes the characters take.
 */
export const STORED_MESSAGE_CHARACTERS = 4 * 1024 * 1024;
export const TRANSCRIPT_PIECE_CHARACTERS = 2 * 1024 * 1024;
export const RECEIPT_TEXT_CHARACTERS = 1024 * 1024;
export const RECEIPT_ARGUMENTS_CHARACTERS = 512 * 1024;
/** Characters of one step of a receipt, and of all its steps. */
export const RECEIPT_STEP_CHARACTERS = 16 * 1024;
export const RECEIPT_STEPS_CHARACTERS = 256 * 1024;
/** The newest receipts of a run whose steps can be read. */
export const RECEIPT_STEPS_NEWEST = 100;

/** Messages to one turn that goes on, and characters of each. */
export const STEERING_MESSAGES = 16;
export const STEERING_CHARACTERS = 10_000;

/** Of one message that an agent sends: blocks, attachments, and characters of an attachment's reference. */
export const MESSAGE_BLOCKS = 200;
export const MESSAGE_ATTACHMENTS = 32;
export const REFERENCE_LENGTH = 4096;

/** Background turns of one agent that execute at once, and how long one may take (specification 8: not shown). */
export const BACKGROUND_CONCURRENCY = 4;
export const BACKGROUND_TIMEOUT_MS = 30 * 60_000;
/** Pauses before further attempts of a background turn whose model's provider is away (specification: not shown). */
export const BACKGROUND_RETRIES = ["1m", "5m", "15m", "30m"] as const;
export const MOST_RETRIES = 20;

/**
 * Of turns whose caller waits: how many of one agent there are at once in one process, which also ends a circle of agents that call each other over
 * HTTP; characters of the messages of one; characters that a caller may not have read; and how long the output of one that executed in another
 * process is kept for its caller.
 */
export const ASKED_AT_ONCE = 100;
export const ASKED_CHARACTERS = 16 * 1024 * 1024;
export const ASKED_UNREAD_CHARACTERS = 8 * 1024 * 1024;
export const ASKED_OUTPUT_MS = 60_000;

/** Files of one query, and bytes of media that a model is shown at once: the newest go first. */
export const QUERY_FILES = 32;
export const SHOWN_MEDIA_BYTES = 20 * 1024 * 1024;

/**
 * Bytes of files that one turn shows its model, those of its tools included; of all turns that execute at once, where nothing else is
 * configured; and how long a turn waits for others to end that have used them up.
 */
export const SHOWN_BYTES_OF_TURN = 2 * SHOWN_MEDIA_BYTES;
export const SHOWN_BYTES = 256 * 1024 * 1024;
export const SHOWN_WAIT_MS = 60_000;

/** Characters of an attachment that its tool gives at once, and bytes of an image that it shows. */
export const READ_CHARACTERS = 40_000;
export const READ_IMAGE_BYTES = 4 * 1024 * 1024;

/** Prompts of an agent that a list has, how long it waits for their sources; characters of an ID, arguments, and characters of one. */
export const LISTED_PROMPTS = 200;
export const PROMPTS_WAIT_MS = 5000;
export const PROMPT_ID_CHARACTERS = 512;
export const PROMPT_ARGUMENTS = 32;
export const PROMPT_ARGUMENT_CHARACTERS = 10_000;

/** How long an agent engine may go on after its turn was stopped. */
export const ABANDONED_AFTER_MS = 5000;

/** Characters of the id of a run, and of a conversation: a longer one is not looked up. */
export const RUN_ID_CHARACTERS = 128;
export const CONVERSATION_ID_CHARACTERS = 128;

/** Limits of a day that one answer tells the use of. */
export const BUDGETS = 200;
