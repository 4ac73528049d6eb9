(* verify FILE...: hand the bytes of each file to the checker that Coq proves, print its line, return the worst status.
   Nothing proves what stands here: it opens files, keeps limits of time and memory, prints, and decides nothing. *)

let most_bytes = 1 lsl 25 (* of a file; in memory a byte takes 24 *)
let small = 100_000 (* a file of fewer bytes may take so many seconds of the processor, and so many words of memory *)
let most_seconds = 4.0
let most_words = 50_000_000

exception Refused of string

let contents path =
  let channel = open_in_bin path and chunk = Bytes.create 65536 and found = Buffer.create 65536 in
  let rec more () =
    let count = input channel chunk 0 (Bytes.length chunk) in
    if count > 0 then begin
      Buffer.add_subbytes found chunk 0 count;
      if Buffer.length found > most_bytes then raise (Refused "the file is too large");
      more ()
    end in
  Fun.protect ~finally:(fun () -> close_in_noerr channel) more;
  Buffer.contents found

let bytes_of text =
  let rec from at rest = if at < 0 then rest else from (at - 1) (Integer.of_int (Char.code text.[at]) :: rest) in
  from (String.length text - 1) []

let string_of codes =
  let found = Buffer.create 256 in
  List.iter (fun code -> Buffer.add_char found (Char.chr (Integer.to_int code))) codes;
  Buffer.contents found

(* The name of a file on one line; it has no colon before a space, so that it is no verdict. *)
let shown path =
  let found = Buffer.create 64 and last = String.length path - 1 in
  let escaped at c = c < ' ' || c > '~' || (c = ':' && at < last && path.[at + 1] = ' ') in
  String.iteri (fun at c ->
    if escaped at c then Printf.bprintf found "\\x%02x" (Char.code c) else Buffer.add_char found c) path;
  Buffer.contents found

let over _ = raise (Refused (Printf.sprintf "it takes more than %g s, the limit for files below %d bytes" most_seconds small))
let crowded () =
  if (Gc.quick_stat ()).Gc.heap_words > most_words then
    raise (Refused (Printf.sprintf "it takes more memory than files below %d bytes may take" small))

let within_limits text work =
  if String.length text >= small then work ()
  else begin
    let timer seconds = ignore (Unix.setitimer Unix.ITIMER_VIRTUAL { Unix.it_interval = 0.0; it_value = seconds }) in
    let alarm = Gc.create_alarm crowded in
    timer most_seconds;
    Fun.protect ~finally:(fun () -> timer 0.0; Gc.delete_alarm alarm) work
  end

let decide path =
  try
    if Sys.is_directory path then raise (Refused "it is a folder; name the files");
    let text = contents path in
    let answer = within_limits text (fun () -> Checker.verify (bytes_of text)) in
    (Integer.to_int (Checker.status answer), string_of (Checker.line answer))
  with
  | Refused why | Sys_error why | Fun.Finally_raised (Refused why) -> (2, "cannot be read: " ^ why)
  | Stack_overflow | Out_of_memory -> (2, "cannot be read: there is not enough memory or stack (ulimit -s unlimited gives more)")

(* Worst of all is a file that cannot be read, then one that is rejected, then one of a kind that is not covered. *)
let worse a b =
  let rank = function 0 -> 0 | 4 -> 1 | 1 -> 2 | _ -> 3 in
  if rank a >= rank b then a else b

let () =
  Sys.set_signal Sys.sigvtalrm (Sys.Signal_handle over);
  let told path = let status, line = decide path in Printf.printf "%s: %s\n%!" (shown path) line; status in
  let rec each_line worst = match input_line stdin with
    | path -> each_line (worse worst (told path))
    | exception End_of_file -> worst in
  match List.tl (Array.to_list Sys.argv) with
  | [] -> prerr_endline "usage: verify FILE..., or verify - with a name on each line of the input"; exit 2
  | ["-"] -> exit (each_line 0)
  | "--" :: files | files -> exit (List.fold_left (fun worst path -> worse worst (told path)) 0 files)
