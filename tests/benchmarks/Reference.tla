------------------------------ MODULE Reference ------------------------------
(* The untimed reference model (models/small/reference.py) for TLC, step for step. *)
(* Rooms, ranks, chunks and slots count from 1; 0 stands for none.           *)
EXTENDS Naturals, FiniteSets

CONSTANTS Rooms, Ranks, Chunks, Slots

VARIABLES phase, slot, owner, acked, rank, left, queued, call, landed, target, abortSent, ackSent, data, bad

vars == <<phase, slot, owner, acked, rank, left, queued, call, landed, target, abortSent, ackSent, data, bad>>

R == 1..Rooms
P == 1..Ranks
C == 1..Chunks
S == 1..Slots

Init ==
    /\ phase = [q \in R |-> "waiting"]
    /\ slot = [q \in R |-> [c \in C |-> 0]]
    /\ owner = [s \in S |-> 0]
    /\ acked = [q \in R |-> [p \in P |-> FALSE]]
    /\ rank = [q \in R |-> [p \in P |-> "idle"]]
    /\ left = [q \in R |-> [p \in P |-> 0]]
    /\ queued = [q \in R |-> [p \in P |-> 0]]
    /\ call = [q \in R |-> [p \in P |-> [c \in C |-> FALSE]]]
    /\ landed = [q \in R |-> [p \in P |-> 0]]
    /\ target = [q \in R |-> [p \in P |-> FALSE]]
    /\ abortSent = [q \in R |-> [p \in P |-> FALSE]]
    /\ ackSent = [q \in R |-> [p \in P |-> FALSE]]
    /\ data = [s \in S |-> [p \in P |-> 0]]
    /\ bad = FALSE

Free == {s \in S : owner[s] = 0}
Place(s) == Cardinality({t \in Free : t <= s})
NoCall(q, p) == \A c \in C : ~call[q][p][c]
FreeSlots(q) == owner' = [s \in S |-> IF owner[s] = q THEN 0 ELSE owner[s]]

Admit(q) ==
    /\ phase[q] = "waiting"
    /\ Cardinality(Free) >= Chunks
    /\ slot' = [slot EXCEPT ![q] = [c \in C |-> CHOOSE s \in Free : Place(s) = c]]
    /\ owner' = [s \in S |-> IF s \in Free /\ Place(s) <= Chunks THEN q ELSE owner[s]]
    /\ phase' = [phase EXCEPT ![q] = "transferring"]
    /\ rank' = [rank EXCEPT ![q] = [p \in P |-> "active"]]
    /\ left' = [left EXCEPT ![q] = [p \in P |-> Chunks]]
    /\ UNCHANGED <<acked, queued, call, landed, target, abortSent, ackSent, data, bad>>

Produce(q, p) ==
    /\ rank[q][p] = "active"
    /\ left[q][p] > 0
    /\ left' = [left EXCEPT ![q][p] = @ - 1]
    /\ queued' = [queued EXCEPT ![q][p] = @ + 1]
    /\ UNCHANGED <<phase, slot, owner, acked, rank, call, landed, target, abortSent, ackSent, data, bad>>

Dequeue(q, p) ==
    /\ queued[q][p] > 0
    /\ NoCall(q, p)
    /\ queued' = [queued EXCEPT ![q][p] = @ - 1]
    /\ call' = IF rank[q][p] = "failed" THEN call
               ELSE [call EXCEPT ![q][p][Chunks - left[q][p] - queued[q][p] + 1] = TRUE]
    /\ UNCHANGED <<phase, slot, owner, acked, rank, left, landed, target, abortSent, ackSent, data, bad>>

Land(q, p, c) ==
    /\ call[q][p][c]
    /\ call' = [call EXCEPT ![q][p][c] = FALSE]
    /\ landed' = [landed EXCEPT ![q][p] = @ + 1]
    /\ data' = [data EXCEPT ![slot[q][c]][p] = q]
    /\ bad' = (bad \/ (owner[slot[q][c]] # 0 /\ owner[slot[q][c]] # q))
    /\ UNCHANGED <<phase, slot, owner, acked, rank, left, queued, target, abortSent, ackSent>>

Succeed(q) ==
    /\ phase[q] = "transferring"
    /\ \A p \in P : landed[q][p] = Chunks
    /\ phase' = [phase EXCEPT ![q] = "decoding"]
    /\ UNCHANGED <<slot, owner, acked, rank, left, queued, call, landed, target, abortSent, ackSent, data, bad>>

Finish(q) ==
    /\ phase[q] = "decoding"
    /\ phase' = [phase EXCEPT ![q] = "done"]
    /\ FreeSlots(q)
    /\ UNCHANGED <<slot, acked, rank, left, queued, call, landed, target, abortSent, ackSent, data, bad>>

Abort(q) ==
    /\ phase[q] = "transferring"
    /\ phase' = [phase EXCEPT ![q] = "held"]
    /\ abortSent' = [abortSent EXCEPT ![q] = [p \in P |-> TRUE]]
    /\ UNCHANGED <<slot, owner, acked, rank, left, queued, call, landed, target, ackSent, data, bad>>

RecvAbort(q, p) ==
    /\ abortSent[q][p]
    /\ abortSent' = [abortSent EXCEPT ![q][p] = FALSE]
    /\ rank' = [rank EXCEPT ![q][p] = "failed"]
    /\ target' = [target EXCEPT ![q][p] = TRUE]
    /\ UNCHANGED <<phase, slot, owner, acked, left, queued, call, landed, ackSent, data, bad>>

SendAck(q, p) ==
    /\ target[q][p]
    /\ NoCall(q, p)
    /\ target' = [target EXCEPT ![q][p] = FALSE]
    /\ ackSent' = [ackSent EXCEPT ![q][p] = TRUE]
    /\ UNCHANGED <<phase, slot, owner, acked, rank, left, queued, call, landed, abortSent, data, bad>>

RecvAck(q, p) ==
    /\ ackSent[q][p]
    /\ ackSent' = [ackSent EXCEPT ![q][p] = FALSE]
    /\ acked' = IF phase[q] = "held" THEN [acked EXCEPT ![q][p] = TRUE] ELSE acked
    /\ UNCHANGED <<phase, slot, owner, rank, left, queued, call, landed, target, abortSent, data, bad>>

DropAck(q, p) ==
    /\ ackSent[q][p]
    /\ ackSent' = [ackSent EXCEPT ![q][p] = FALSE]
    /\ UNCHANGED <<phase, slot, owner, acked, rank, left, queued, call, landed, target, abortSent, data, bad>>

Drained(q) ==
    /\ phase[q] = "held"
    /\ \A p \in P : acked[q][p]
    /\ phase' = [phase EXCEPT ![q] = "aborted"]
    /\ FreeSlots(q)
    /\ UNCHANGED <<slot, acked, rank, left, queued, call, landed, target, abortSent, ackSent, data, bad>>

Next ==
    \E q \in R :
        \/ Admit(q)
        \/ Succeed(q)
        \/ Finish(q)
        \/ Abort(q)
        \/ Drained(q)
        \/ \E p \in P :
            \/ Produce(q, p)
            \/ Dequeue(q, p)
            \/ \E c \in C : Land(q, p, c)
            \/ RecvAbort(q, p)
            \/ SendAck(q, p)
            \/ RecvAck(q, p)
            \/ DropAck(q, p)

Spec == Init /\ [][Next]_vars

NoLateWrite == ~bad
==============================================================================
