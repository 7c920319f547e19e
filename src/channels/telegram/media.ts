import type { Message } from "grammy/types";
import { safeName } from "../../lib/safe-name.ts";

/** A file that came with a message. */
export interface Media {
  kind: "photo" | "document" | "voice message" | "audio" | "video";
  fileId: string;
  name: string;
  size: number | undefined;
  type: string | undefined;
}

/** The file of a message, if it has one. */
export function mediaOf(message: Message): Media | undefined {
  const { message_id: id, photo, document, voice, audio, video, video_note, animation } = message;
  const largest = photo?.at(-1);
  if (largest) return made("photo", largest, `photo-${id}.jpg`, "image/jpeg");
  if (voice) return made("voice message", voice, `voice-${id}.ogg`, voice.mime_type ?? "audio/ogg");
  if (audio) return made("audio", audio, audio.file_name ?? `audio-${id}.mp3`, audio.mime_type);
  if (video) return made("video", video, video.file_name ?? `video-${id}.mp4`, video.mime_type);
  if (video_note) return made("video", video_note, `video-${id}.mp4`, "video/mp4");
  // Telegram also sends an animation as a document.
  if (animation) return made("video", animation, animation.file_name ?? `animation-${id}.mp4`, animation.mime_type);
  if (document) return made("document", document, document.file_name ?? `document-${id}`, document.mime_type);
  return undefined;
}

function made(
  kind: Media["kind"],
  { file_id, file_size }: { file_id: string; file_size?: number },
  name: string,
  type: string | undefined,
): Media {
  return { kind, fileId: file_id, name: safeName(name), size: file_size, type };
}
